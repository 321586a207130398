//! Links between Markdown files have an existing target.

use super::finding::Finding;
use super::tree::{File, Tree};
use crate::workspace::Package;

/// Every relative link in a Markdown file names a file or directory that exists, and a heading it has.
pub(crate) fn relative_links(tree: &Tree, _: &[Package]) -> Vec<Finding> {
    tree.ending(".md").flat_map(|file| broken_links(tree, file)).collect()
}

fn broken_links(tree: &Tree, file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in prose(&file.text) {
        for target in targets(&without_code(line)) {
            if let Some(text) = complaint(tree, file, target) {
                findings.push(Finding::new(&file.path, number, text));
            }
        }
    }
    findings
}

/// What is wrong with a link, if anything is.
fn complaint(tree: &Tree, file: &File, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, heading) = target.split_once('#').unwrap_or((target, ""));
    let path = if path.is_empty() { file.path.clone() } else { resolve(&file.path, path)? };
    if !tree.has(&path) {
        return Some(format!("`{target}` leads nowhere; there is no {path}"));
    }
    let known = heading.is_empty() || tree.file(&path).is_none_or(|file| has_heading(&file.text, heading));
    (!known).then(|| format!("`{target}` leads nowhere; {path} has no such heading"))
}

/// A link's path as seen from the root; `None` for one that leaves the tree, which cannot be checked.
fn resolve(from: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The lines outside of code fences, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

/// The line with code spans left out.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect()
}

/// What stands in the parentheses of `[text](target)`.
fn targets(line: &str) -> Vec<&str> {
    let after = line.split("](").skip(1);
    after.filter_map(|rest| rest.split_once(')')).map(|(target, _)| target.trim()).collect()
}

fn has_heading(text: &str, anchor: &str) -> bool {
    prose(text).any(|(_, line)| line.starts_with('#') && slug(line.trim_start_matches('#').trim()) == anchor)
}

/// A heading as the anchor that renderers make of it.
fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::finding::{NONE, lines};

    fn found(text: &str) -> Vec<usize> {
        let tree = Tree::of(&[
            ("docs/a.md", text),
            ("docs/design/b.md", "# The calls, in groups\n"),
            ("README.md", ""),
        ]);
        lines(&relative_links(&tree, &[]))
    }

    #[test]
    fn links_that_lead_somewhere_are_fine() {
        let text = "# Top\n[a](design/b.md) [b](../README.md) [c](design/) [d](https://example.org/x) [e](#top)\n\
                    [f](design/b.md#the-calls-in-groups)\n```\n[g](nowhere)\n```\n`[h](nowhere)`\n";
        assert_eq!(found(text), NONE);
    }

    #[test]
    fn links_that_lead_nowhere_are_found() {
        assert_eq!(found("[a](b.md)\n\n[c](../docs/design/c.md) and [d](/README.md)\n"), [1, 3, 3]);
        assert_eq!(found("[a](design/b.md#the-waste)\n[b](#bottom)\n"), [1, 2]);
    }
}
