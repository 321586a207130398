//! Files named after the noun they hold.

use super::finding::Finding;
use super::tree::Tree;
use crate::workspace::Package;

/// Names that say nothing about what is inside, so that everything ends up there.
const EMPTY_NAMES: [&str; 10] =
    ["base", "common", "helper", "helpers", "misc", "support", "type", "types", "util", "utils"];

/// No source file or its directory has one of the [`EMPTY_NAMES`].
pub(crate) fn file_names(tree: &Tree, _: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.ending(".rs") {
        let mut parts = file.path.split('/').map(|part| part.trim_end_matches(".rs"));
        if let Some(name) = parts.find(|part| EMPTY_NAMES.contains(part)) {
            let text = format!("`{name}` says nothing; name the file after the one noun it holds");
            findings.push(Finding::new(&file.path, 1, text));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_names_are_found_as_files_and_as_directories() {
        let tree = Tree::of(&[
            ("crates/a/src/util.rs", ""),
            ("crates/a/tests/common/mod.rs", ""),
            ("crates/a/src/utility_bill.rs", ""),
            ("crates/common-sense/src/lib.rs", ""),
        ]);
        let found: Vec<_> = file_names(&tree, &[]).iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[0].starts_with("crates/a/src/util.rs:1:") && found[1].contains("`common`"),
            "{found:?}"
        );
    }
}
