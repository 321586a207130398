//! Words that hide who acts, or came from a metaphor, and are not wanted back.

use super::finding::Finding;
use super::tree::Tree;
use crate::workspace::Package;

/// Each with what to write instead.
const WORDS: &[(&str, &str)] = &[
    ("nobody", "say who does not: no thread, no caller, or use the passive"),
    ("whoever", "say who: the caller, the next submission"),
    ("somebody", "say who: a caller, another thread"),
    ("anybody", "say who: any thread, any caller"),
    ("everybody", "say who: all callers, every waiter"),
    ("to be had", "say available"),
    ("the one of now", "say the current one"),
    ("of its own", "say separate, or leave it out"),
    ("of their own", "say separate, or leave it out"),
    ("all the same", "say anyway or still, or leave it out"),
    ("let go of", "say release or drop"),
    ("lets go of", "say releases or drops"),
];

/// Where the words may stand: pages that keep the wording of their time, this list, and the parts that were not rewritten yet. A part
/// that is rewritten leaves the list and does not come back.
const EXEMPT: [&str; 3] = ["docs/lab/", "xtask/src/tidy/banned_words.rs", "STYLE.md"];

/// No text has one of the words.
pub(crate) fn unwanted(tree: &Tree, _: &[Package]) -> Vec<Finding> {
    let files = tree.ending(".rs").chain(tree.ending(".md"));
    let files = files.filter(|file| !EXEMPT.iter().any(|exempt| file.path.starts_with(exempt)));
    files
        .flat_map(|file| {
            file.lines().flat_map(move |(number, line)| {
                found(line).map(move |(word, advice)| {
                    Finding::new(&file.path, number, format!("`{word}`: {advice}"))
                })
            })
        })
        .collect()
}

/// The words in a line, also as parts of a name.
fn found(line: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let line = line.to_lowercase().replace('_', " ");
    WORDS.iter().copied().filter(move |(word, _)| {
        line.match_indices(word).any(|(at, _)| {
            let is_letter = char::is_alphanumeric;
            let before = line[..at].chars().next_back().is_some_and(is_letter);
            let after = line[at + word.len()..].chars().next().is_some_and(is_letter);
            !before && !after
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::finding::{NONE, lines};

    #[test]
    fn a_word_is_found_wherever_it_stands_and_only_whole() {
        let found = |path: &str, text: &str| lines(&unwanted(&Tree::of(&[(path, text)]), &[]));
        assert_eq!(found("crates/a/src/b.rs", "// fine\n// Nobody waits.\n"), [2]);
        assert_eq!(found("docs/a.md", "what is to be had\na stream of its own\n"), [1, 2]);
        assert_eq!(found("crates/a/src/b.rs", "let nobody_knows = 1;\n"), [1]);
        assert_eq!(found("crates/a/src/b.rs", "// anybodys\n"), NONE);
        assert_eq!(found("docs/lab/a.md", "nobody\n"), NONE);
    }
}
