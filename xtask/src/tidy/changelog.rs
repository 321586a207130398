//! The changelog has a section for the next release.

use super::finding::Finding;
use super::tree::Tree;
use crate::workspace::Package;

const PATH: &str = "CHANGELOG.md";

/// The changelog begins with what is not released yet.
pub(crate) fn unreleased(tree: &Tree, _: &[Package]) -> Vec<Finding> {
    let Some(file) = tree.file(PATH) else {
        return vec![Finding::new(PATH, 1, "write it: what a user sees change, newest first")];
    };
    let first = file.lines().find(|(_, line)| line.starts_with("## "));
    match first {
        Some((_, "## Unreleased")) => Vec::new(),
        found => {
            let line = found.map_or(1, |(number, _)| number);
            vec![Finding::new(PATH, line, "let the first section be `## Unreleased`")]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::finding::{NONE, lines};

    #[test]
    fn the_first_section_is_the_unreleased_one() {
        let found = |text: &str| lines(&unreleased(&Tree::of(&[(PATH, text)]), &[]));
        assert_eq!(found("# Changes\n\n## Unreleased\n\n## 0.1.0\n"), NONE);
        assert_eq!(found("# Changes\n\n## 0.1.0\n\n## Unreleased\n"), [3]);
        assert_eq!(found("# Changes\n"), [1]);
        assert_eq!(lines(&unreleased(&Tree::of(&[]), &[])), [1]);
    }
}
