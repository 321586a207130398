//! No trailing blanks, no carriage returns, and a newline at the end of each file.

use super::finding::Finding;
use super::tree::{File, Tree};
use crate::workspace::Package;

/// Texts that people write; what tools print, such as PTX, stays as printed.
const WRITTEN: [&str; 9] = [".rs", ".md", ".toml", ".sh", ".cu", ".cuh", ".c", ".h", ".yml"];

/// No blanks before a line end, no carriage returns, and a line end at the end.
pub(crate) fn line_ends(tree: &Tree, _: &[Package]) -> Vec<Finding> {
    let written = tree.files.iter().filter(|file| WRITTEN.iter().any(|end| file.path.ends_with(end)));
    written.flat_map(in_file).collect()
}

fn in_file(file: &File) -> Vec<Finding> {
    let numbered = (1..).zip(file.text.split('\n'));
    let mut findings: Vec<_> = numbered
        .filter(|(_, line)| line.ends_with([' ', '\t', '\r']))
        .map(|(number, _)| Finding::new(&file.path, number, "take the blanks at the end of the line out"))
        .collect();
    if !file.text.is_empty() && (!file.text.ends_with('\n') || file.text.ends_with("\n\n")) {
        let last = file.text.lines().count();
        findings.push(Finding::new(&file.path, last, "end the file with exactly one line end"));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::finding::{NONE, lines};

    fn found(path: &str, text: &str) -> Vec<usize> {
        lines(&line_ends(&Tree::of(&[(path, text)]), &[]))
    }

    #[test]
    fn blanks_and_missing_or_doubled_line_ends_are_found() {
        assert_eq!(found("a.md", "a \nb\t\nc\r\nd\n"), [1, 2, 3]);
        assert_eq!(found("a.rs", "a\nb"), [2]);
        assert_eq!(found("a.rs", "a\n\n"), [2]);
        assert_eq!(found("a.rs", "a\n\nb\n"), NONE);
        assert_eq!(found("a.ptx", "a \n"), NONE);
    }
}
