//! Sums up test results from the output of test binaries.
//!
//! The lines `running N tests` and `test result: ...` have been the same for years and are the only report a stable
//! test binary gives. A binary that dies in between prints the first and not the second; it counts as one failure.
//!
//! A test may run its own binary again, as a child process. If it fails, what the child printed stands between
//! `failures:` and the result, with similar lines; there only a result for the right number of tests counts.

use std::collections::VecDeque;

/// The end of the line a test binary prints for a test that is a helper process: other tests start it, and it tests nothing itself.
const HELPER: &str = " ... ignored, helper process";

/// How many lines of what its failed tests printed are kept for each test binary. The last ones: a panic message is at the end.
const KEPT: usize = 60;

/// What the tests came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Tests that passed, the skipped ones included: a test binary cannot tell them apart.
    pub(crate) passed: usize,
    /// Tests that failed.
    pub(crate) failed: usize,
    /// Tests marked to be ignored, helper processes left out.
    pub(crate) ignored: usize,
    /// Names of the failed tests.
    pub(crate) failures: Vec<String>,
    /// What the failed tests printed, at most [`KEPT`] lines of each test binary.
    pub(crate) printed: VecDeque<String>,
    started: usize,
    finished: usize,
    /// Helper processes of the binary that is running.
    helpers: usize,
    /// How many tests the binary that is running has, by its own word.
    announced: usize,
    /// Whether it is showing what its failed tests printed.
    showing: bool,
    /// How many lines of that are kept.
    shown: usize,
}

impl Totals {
    /// Takes one line of output in.
    pub(crate) fn read_line(&mut self, line: &str) {
        let line = without_colour(line);
        if let Some(counts) = line.strip_prefix("test result: ").map(Counts::read) {
            self.finish(&counts);
        } else if self.showing {
            // What failed tests printed is theirs: shown again at the end, never counted.
            if self.shown == KEPT {
                let first = self.printed.len() - KEPT;
                self.printed.remove(first);
            } else {
                self.shown += 1;
            }
            self.printed.push_back(line);
        } else if let Some(announced) = announced(&line) {
            self.started += 1;
            self.announced = announced;
        } else if line == "failures:" && self.died() > 0 {
            self.showing = true;
            self.shown = 0;
        } else if line.starts_with("test ") && line.ends_with(HELPER) {
            self.helpers += 1;
        } else if let Some(name) =
            line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED"))
        {
            self.failures.push(name.to_owned());
        }
    }

    /// Adds what another run came to.
    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
        self.failures.extend(other.failures);
        self.printed.extend(other.printed);
        self.started += other.started;
        self.finished += other.finished;
    }

    fn finish(&mut self, counts: &Counts) {
        if self.showing && counts.total() != self.announced {
            return;
        }
        self.showing = false;
        self.finished += 1;
        self.passed += counts.passed;
        self.failed += counts.failed;
        self.ignored += counts.ignored.saturating_sub(std::mem::take(&mut self.helpers));
    }

    /// Test binaries that began and did not come to their result.
    pub(crate) fn died(&self) -> usize {
        self.started.saturating_sub(self.finished)
    }
}

/// The numbers of one result line.
struct Counts {
    passed: usize,
    failed: usize,
    ignored: usize,
    measured: usize,
}

impl Counts {
    /// From what follows `test result: `.
    fn read(text: &str) -> Self {
        let [passed, failed, ignored, measured] =
            ["passed", "failed", "ignored", "measured"].map(|word| count_before(text, word));
        Self { passed, failed, ignored, measured }
    }

    fn total(&self) -> usize {
        self.passed + self.failed + self.ignored + self.measured
    }
}

/// The number in `running 1 test`, `running 12 tests`.
fn announced(line: &str) -> Option<usize> {
    let words: Vec<_> = line.split(' ').collect();
    match words[..] {
        ["running", count, "test" | "tests"] => count.parse().ok(),
        _ => None,
    }
}

/// The number in front of a word: 3 for `failed` in `FAILED. 12 passed; 3 failed; ...`.
fn count_before(text: &str, word: &str) -> usize {
    let mut last = "";
    for next in text.split([' ', ';']).filter(|next| !next.is_empty()) {
        if next == word {
            return last.parse().unwrap_or(0);
        }
        last = next;
    }
    0
}

/// The line without terminal escapes of the form `ESC [ ... m`.
fn without_colour(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, escape)) = rest.split_once("\x1b[") {
        plain.push_str(before);
        rest = escape.split_once('m').map_or("", |(_, after)| after);
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Totals {
        let mut totals = Totals::default();
        text.lines().for_each(|line| totals.read_line(line));
        totals
    }

    #[test]
    fn results_of_several_binaries_add_up() {
        let totals = read(
            "running 3 tests\ntest a ... ok\ntest b::c ... FAILED\ntest d ... ignored\n\
             test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
             running 1 test\ntest e ... ok\n\
             test result: \x1b[32mok\x1b[0m. 1 passed; 0 failed; 0 ignored; 0 measured; 7 filtered out; finished in 0.10s",
        );
        assert_eq!((totals.passed, totals.failed, totals.ignored), (2, 1, 1));
        assert_eq!(totals.failures, ["b::c"]);
        assert_eq!(totals.died(), 0);
    }

    #[test]
    fn helper_processes_are_no_tests() {
        let totals = read(
            "running 3 tests\ntest worker ... ignored, helper process\ntest slow ... ignored\ntest a ... ok\n\
             test result: ok. 1 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out\n\
             running 1 test\ntest b ... ignored\ntest result: ok. 0 passed; 0 failed; 1 ignored",
        );
        assert_eq!((totals.passed, totals.failed, totals.ignored), (1, 0, 2));
    }

    #[test]
    fn a_binary_that_dies_is_counted() {
        let totals = read(
            "running 2 tests\ntest a ... ok\nrunning 0 tests\ntest result: ok. 0 passed; 0 failed; 0 ignored",
        );
        assert_eq!((totals.died(), totals.failed), (1, 0));
    }

    #[test]
    fn what_a_failed_test_printed_is_not_counted_again() {
        let totals = read(
            "running 3 tests\ntest a ... ok\ntest b ... FAILED\ntest c ... ok\n\nfailures:\n\n---- b stdout ----\n\
             running 1 test\ntest b ... FAILED\n\
             test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 2 filtered out\n\
             running 1 test\n\nfailures:\n    b\n\n\
             test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n\
             running 1 test\ntest d ... FAILED\ntest result: FAILED. 0 passed; 1 failed; 0 ignored",
        );
        assert_eq!((totals.passed, totals.failed, totals.died()), (2, 2, 0));
        assert_eq!(totals.failures, ["b", "d"]);
        assert_eq!(totals.printed[1], "---- b stdout ----");
    }

    #[test]
    fn the_last_lines_of_each_binary_are_kept() {
        let binary = |name: &str| {
            let noise: String = (0..2 * KEPT).map(|line| format!("{name} {line}\n")).collect();
            format!(
                "running 1 test\ntest {name} ... FAILED\n\nfailures:\n{noise}test result: FAILED. 0 passed; 1 failed\n"
            )
        };
        let totals = read(&format!("{}{}", binary("a"), binary("b")));
        assert_eq!(totals.printed.len(), 2 * KEPT);
        assert_eq!((totals.printed[0].as_str(), totals.printed[KEPT].as_str()), ("a 60", "b 60"));
        assert_eq!(totals.printed.back().map(String::as_str), Some("b 119"));
    }

    #[test]
    fn a_line_of_a_test_that_only_looks_alike_is_nothing() {
        assert_eq!(read("running out of tests\ntest passes\nthe test result: 3 failed"), Totals::default());
    }
}
