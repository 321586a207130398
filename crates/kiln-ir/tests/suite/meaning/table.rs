//! The table `sentences.txt`: what is documented, each sentence of it, and what shows that it holds.
//!
//! A line `# Name` begins what is documented, a line that is not indented is one of its sentences, and an indented one shows it:
//!
//! - `expression => value`: what one thread computes;
//! - `{ statements } => value`: what one thread leaves in `y[0]`;
//! - `2 x 3: ... => values`: two blocks of three threads, each with its element of `y`, or the first elements that are left;
//! - `... => refused: words`: no program, for a reason with these words; `... => trap code by thread`;
//! - `see file::test`: a test of another kind.

/// The table.
const TEXT: &str = include_str!("sentences.txt");

/// A sentence with what shows that it holds.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) sentence: &'static str,
    pub(crate) shown: Vec<Shown>,
}

/// What shows that a sentence holds.
#[derive(Debug)]
pub(crate) enum Shown {
    Run(&'static str),
    /// A file of this folder, and a test in it.
    Test {
        file: &'static str,
        test: &'static str,
    },
}

/// The entries of the table.
pub(crate) fn entries() -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut name = "";
    for line in TEXT.lines().filter(|line| !line.trim().is_empty()) {
        if let Some(next) = line.strip_prefix("# ") {
            name = next;
        } else if let Some(line) = line.strip_prefix("    ") {
            let shown = match line.strip_prefix("see ").and_then(|place| place.split_once("::")) {
                Some((file, test)) => Shown::Test { file, test },
                None => Shown::Run(line),
            };
            entries.last_mut().expect("a sentence comes first").shown.push(shown);
        } else {
            entries.push(Entry { name, sentence: line, shown: Vec::new() });
        }
    }
    entries
}
