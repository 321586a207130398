//! The shape of a source file: how long, how it begins, what a crate's root holds.

use super::finding::Finding;
use super::source_text::Masked;
use super::tree::{File, Tree};
use crate::workspace::Package;

/// With the tests in it.
const FILE_LINES: usize = 500;

/// What begins an item that belongs to a file named after it.
const ITEMS: [&str; 10] =
    ["fn ", "struct ", "enum ", "trait ", "impl ", "impl<", "union ", "const ", "static ", "unsafe "];

/// A file is one idea and at most [`FILE_LINES`] long.
pub(crate) fn file_length(tree: &Tree, _: &[Package]) -> Vec<Finding> {
    let too_long = tree.ending(".rs").filter(|file| file.text.lines().count() > FILE_LINES);
    too_long
        .map(|file| {
            let count = file.text.lines().count();
            let text =
                format!("{count} lines, more than {FILE_LINES}; move one of its ideas to another file");
            Finding::new(&file.path, FILE_LINES + 1, text)
        })
        .collect()
}

/// A file begins by saying what it is.
pub(crate) fn header(tree: &Tree, _: &[Package]) -> Vec<Finding> {
    let silent = tree.ending(".rs").filter(|file| !file.text.starts_with("//!"));
    silent
        .map(|file| {
            Finding::new(&file.path, 1, "begin with `//!`: what this file is, and why it is this way")
        })
        .collect()
}

/// `lib.rs` holds docs, `mod` and `pub use`.
pub(crate) fn crate_root(tree: &Tree, _: &[Package]) -> Vec<Finding> {
    tree.ending("/src/lib.rs").flat_map(items_in_root).collect()
}

fn items_in_root(file: &File) -> Vec<Finding> {
    let code = Masked::new(&file.text).code;
    let items = (1..).zip(code.lines()).filter(|(_, line)| {
        let line = line.strip_prefix("pub ").or(line.strip_prefix("pub(crate) ")).unwrap_or(line);
        ITEMS.iter().any(|item| line.starts_with(item))
    });
    items
        .map(|(number, _)| {
            Finding::new(&file.path, number, "move this to a file named after it; lib.rs is for docs")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::finding::{NONE, lines};

    #[test]
    fn a_file_over_the_limit_is_found() {
        let tree = Tree::of(&[("a.rs", &"x\n".repeat(FILE_LINES)), ("b.rs", &"x\n".repeat(FILE_LINES + 1))]);
        assert_eq!(lines(&file_length(&tree, &[])), [FILE_LINES + 1]);
    }

    #[test]
    fn a_file_that_does_not_say_what_it_is_is_found() {
        let tree = Tree::of(&[("a.rs", "//! A.\n"), ("b.rs", "// B.\n"), ("c.md", "C.\n")]);
        assert_eq!(header(&tree, &[]).len(), 1);
    }

    #[test]
    fn an_item_in_the_crate_root_is_found() {
        let good = "//! Docs.\n//!\n//! ```\n//! fn main() {}\n//! ```\n#![forbid(unsafe_code)]\nmod a;\npub use a::{\n    A,\n};\n";
        let bad = "//! Docs.\nmod a;\npub fn f() {}\nimpl<T> X for T {}\npub(crate) struct S;\n";
        assert_eq!(lines(&crate_root(&Tree::of(&[("crates/a/src/lib.rs", good)]), &[])), NONE);
        assert_eq!(lines(&crate_root(&Tree::of(&[("crates/a/src/lib.rs", bad)]), &[])), [3, 4, 5]);
        assert_eq!(lines(&crate_root(&Tree::of(&[("crates/a/src/main.rs", bad)]), &[])), NONE);
    }
}
