//! Limits the size of the `Driver` trait.

use super::finding::Finding;
use super::source_text::Masked;
use super::tree::Tree;
use crate::workspace::Package;

const PATH: &str = "crates/kiln-driver/src/driver.rs";
const TRAIT: &str = "pub trait Driver";
const METHODS: usize = 30;

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
}
