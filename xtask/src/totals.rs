//! Totals out of what test binaries print.
//!
//! The lines `running N tests` and `test result: ...` have been the same for years and are the only report a stable
//! test binary gives. A binary that dies in between prints the first and not the second; it counts as one failure.

/// What the tests came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Tests that passed, the skipped ones included: a test binary cannot tell them apart.
    pub(crate) passed: usize,
    /// Tests that failed.
    pub(crate) failed: usize,
    /// Tests marked to be ignored.
    pub(crate) ignored: usize,
    /// Names of the failed tests.
    pub(crate) failures: Vec<String>,
    started: usize,
    finished: usize,
}

impl Totals {
    /// Takes one line of output in.
    pub(crate) fn read_line(&mut self, line: &str) {
        let line = without_colour(line);
        if is_start(&line) {
            self.started += 1;
        } else if let Some(counts) = line.strip_prefix("test result: ") {
            self.finished += 1;
            self.passed += count_before(counts, "passed");
            self.failed += count_before(counts, "failed");
            self.ignored += count_before(counts, "ignored");
        } else if let Some(name) =
            line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED"))
        {
            self.failures.push(name.to_owned());
        }
    }

    /// Test binaries that began and did not come to their result.
    pub(crate) fn died(&self) -> usize {
        self.started.saturating_sub(self.finished)
    }
}

/// `running 1 test`, `running 12 tests`.
fn is_start(line: &str) -> bool {
    let words: Vec<_> = line.split(' ').collect();
    matches!(words[..], ["running", count, "test" | "tests"] if count.parse::<usize>().is_ok())
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
    fn a_binary_that_dies_is_counted() {
        let totals = read(
            "running 2 tests\ntest a ... ok\nrunning 0 tests\ntest result: ok. 0 passed; 0 failed; 0 ignored",
        );
        assert_eq!((totals.died(), totals.failed), (1, 0));
    }

    #[test]
    fn a_line_of_a_test_that_only_looks_alike_is_nothing() {
        assert_eq!(read("running out of tests\ntest passes\nthe test result: 3 failed"), Totals::default());
    }
}
