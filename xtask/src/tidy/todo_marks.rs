//! Marks of unfinished work.

use super::finding::Finding;
use super::source_text::Masked;
use super::tree::Tree;
use crate::workspace::Package;

/// In code, with what to do instead.
const CODE_MARKS: [(&str, &str); 4] = [
    ("todo!", "write it, or leave the whole function out"),
    ("unimplemented!", "write it, or answer with a typed error"),
    ("dbg!", "take it out"),
    ("#[ignore", "make the test run here, or let it skip itself with a reason"),
];

/// A test that is no test: other tests start it as a process.
const HELPER_PROCESS: &str = r#"#[ignore = "helper process"]"#;

/// In comments.
const COMMENT_MARKS: [&str; 4] = ["TODO", "FIXME", "XXX", "HACK"];

/// Nothing is merged that says of itself that it is not done.
pub(crate) fn unfinished(tree: &Tree, _: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.ending(".rs") {
        let masked = Masked::new(&file.text);
        for ((number, line), whole) in (1..).zip(masked.code.lines()).zip(file.text.lines()) {
            if whole.trim() == HELPER_PROCESS {
                continue;
            }
            for (mark, next) in CODE_MARKS.iter().filter(|(mark, _)| has_word(line, mark)) {
                findings.push(Finding::new(&file.path, number, format!("`{mark}`: {next}")));
            }
        }
        for (number, line) in (1..).zip(masked.comments.lines()) {
            for mark in COMMENT_MARKS.iter().filter(|mark| has_word(line, mark)) {
                let text = format!("`{mark}` in a comment: do it, or say plainly what is not supported");
                findings.push(Finding::new(&file.path, number, text));
            }
        }
    }
    findings
}

/// Whether a line has the mark, not as the end of a longer word.
fn has_word(line: &str, mark: &str) -> bool {
    line.match_indices(mark).any(|(at, _)| {
        let before = line.get(..at).and_then(|before| before.chars().next_back());
        let after = line.get(at + mark.len()..).and_then(|after| after.chars().next());
        let in_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        !in_word(before) && !in_word(after)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::finding::{NONE, lines};

    fn found(text: &str) -> Vec<usize> {
        lines(&unfinished(&Tree::of(&[("a.rs", text)]), &[]))
    }

    #[test]
    fn every_mark_is_found_in_code() {
        for (mark, _) in CODE_MARKS {
            assert_eq!(found(&format!("fn f() {{\n    {mark}\n}}\n")), [2], "{mark}");
        }
    }

    #[test]
    fn a_test_may_be_ignored_as_a_helper_process_and_for_no_other_reason() {
        let text = |reason: &str| format!("#[test]\n#[ignore = \"{reason}\"]\nfn f() {{}}\n");
        assert_eq!(found(&text("helper process")), NONE);
        assert_eq!(found(&text("slow")), [2]);
    }

    #[test]
    fn every_mark_is_found_in_comments() {
        for mark in COMMENT_MARKS {
            assert_eq!(found(&format!("f();\n/* a\n{mark}: later */\n// {mark}\n")), [3, 4], "{mark}");
        }
    }

    #[test]
    fn a_mark_in_a_text_or_inside_a_word_is_none() {
        assert_eq!(found("print(\"todo! TODO\"); my_dbg!(x); // a todo! and a HACKSAW\n"), NONE);
    }
}
