//! No absolute path of a developer's machine.

use super::finding::Finding;
use super::tree::Tree;
use crate::workspace::Package;

/// First parts of paths that exist on one machine and not on the next.
const PRIVATE_ROOTS: [&str; 5] = ["home", "root", "tmp", "work", "Users"];

/// Absolute paths into a person's directories neither work elsewhere nor mean anything there.
pub(crate) fn machine_paths(tree: &Tree, _: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        for (number, line) in file.lines() {
            for root in PRIVATE_ROOTS.iter().filter(|root| has_path(line, root)) {
                let text = format!(
                    "a path below /{root} is of one machine; ask the environment or use a relative one"
                );
                findings.push(Finding::new(&file.path, number, text));
            }
        }
    }
    findings
}

/// Whether a path with that first part stands in the line.
fn has_path(line: &str, root: &str) -> bool {
    line.match_indices(&format!("/{root}/")).any(|(at, _)| {
        let before = line.get(..at).and_then(|before| before.chars().next_back());
        !before.is_some_and(|c| c.is_alphanumeric() || "._-/}>)$~*".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::finding::{NONE, lines};

    #[test]
    fn paths_of_a_machine_are_found_and_others_are_not() {
        for root in PRIVATE_ROOTS {
            let text = format!("cd /{root}/x\nsee src/{root}/x\n`/{root}/`\n$HOME/{root}/x\n");
            assert_eq!(lines(&machine_paths(&Tree::of(&[("a.md", &text)]), &[])), [1, 3], "{root}");
        }
        assert_eq!(lines(&machine_paths(&Tree::of(&[("a.md", "/usr/local/cuda/lib64\n")]), &[])), NONE);
    }
}
