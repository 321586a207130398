//! Limits the size of the `Driver` trait and of its commands.

use super::finding::Finding;
use super::source_text::Masked;
use super::tree::Tree;
use crate::workspace::Package;

const PATH: &str = "crates/kiln-driver/src/driver.rs";
const TRAIT: &str = "pub trait Driver";
const METHODS: usize = 30;
const COMMANDS_PATH: &str = "crates/kiln-driver/src/command.rs";
const ENUM: &str = "pub enum Command<";
const COMMANDS: usize = 6;

/// `Driver` has at most [`METHODS`] methods: each one is written by every driver and forwarded by every layer.
pub(crate) fn methods(tree: &Tree, _: &[Package]) -> Vec<Finding> {
    let Some(file) = tree.file(PATH) else {
        return vec![Finding::new(
            PATH,
            1,
            "the trait Driver has moved; correct xtask/src/tidy/driver_size.rs",
        )];
    };
    let code = Masked::new(&file.text).code;
    let inside = (1..).zip(code.lines()).skip_while(|(_, line)| !line.starts_with(TRAIT));
    let body = inside.take_while(|(_, line)| !line.starts_with('}'));
    let beyond = body.filter(|(_, line)| line.starts_with("    fn ")).skip(METHODS);
    beyond
        .map(|(number, _)| {
            let text =
                format!("more than {METHODS} methods; say it with a command, or in the extension trait");
            Finding::new(PATH, number, text)
        })
        .collect()
}

/// `Command` has at most [`COMMANDS`] kinds: each one is executed by every driver, recorded, sent to workers and put into graphs.
pub(crate) fn commands(tree: &Tree, _: &[Package]) -> Vec<Finding> {
    let Some(file) = tree.file(COMMANDS_PATH) else {
        let moved = "the enum Command has moved; correct xtask/src/tidy/driver_size.rs";
        return vec![Finding::new(COMMANDS_PATH, 1, moved)];
    };
    let code = Masked::new(&file.text).code;
    let inside = (1..).zip(code.lines()).skip_while(|(_, line)| !line.starts_with(ENUM));
    let body = inside.take_while(|(_, line)| !line.starts_with('}')).skip(1);
    let is_kind = |line: &str| {
        line.strip_prefix("    ")
            .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_uppercase()))
    };
    let beyond = body.filter(|(_, line)| is_kind(line)).skip(COMMANDS);
    let text = format!("more than {COMMANDS} commands; say it with an image, as operations of libraries are");
    beyond.map(|(number, _)| Finding::new(COMMANDS_PATH, number, text.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::finding::{NONE, lines};

    #[test]
    fn one_method_too_many_is_found() {
        let source = |count| {
            let body = "    fn f(&self) {\n        g();\n    }\n".repeat(count);
            format!("{TRAIT}: Send {{\n{body}}}\nimpl X {{\n    fn other() {{}}\n}}\n")
        };
        let found = |text: &str| lines(&methods(&Tree::of(&[(PATH, text)]), &[]));
        assert_eq!(found(&source(METHODS)), NONE);
        assert_eq!(found(&source(METHODS + 1)), [2 + 3 * METHODS]);
        assert_eq!(lines(&methods(&Tree::of(&[]), &[])), [1]);
    }

    #[test]
    fn one_command_too_many_is_found() {
        let source = |count| {
            let body = "    Copy {\n        from: Place,\n    },\n".repeat(count);
            format!("{ENUM}'a> {{\n{body}}}\npub enum Other {{\n    One,\n}}\n")
        };
        let found = |text: &str| lines(&commands(&Tree::of(&[(COMMANDS_PATH, text)]), &[]));
        assert_eq!(found(&source(COMMANDS)), NONE);
        assert_eq!(found(&source(COMMANDS + 1)), [2 + 3 * COMMANDS]);
        assert_eq!(lines(&commands(&Tree::of(&[]), &[])), [1]);
    }
}
