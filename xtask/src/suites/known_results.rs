//! What is known of a suite: the tests that fail, and the findings that are right, each with its reason.
//!
//! A line is `fails NAME: REASON`, `varies NAME: REASON`, `leaves out NAME: REASON`, `slow NAME: REASON` or `finds TEXT: REASON`. What is slow is left out in the
//! development profile, and with several seeds it runs with the first one alone. A name may end with `*`; a finding is known by a part of its text.

use crate::failure::{Failure, Result};

/// A list.
pub(crate) struct KnownResults {
    lines: Vec<Line>,
}

struct Line {
    kind: Kind,
    what: String,
    reason: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It fails, alone too.
    Fails,
    /// It fails on some machines, or with some seeds.
    Varies,
    /// It is not run.
    LeavesOut,
    /// It takes too long without optimisation, and with every seed.
    Slow,
    /// A finding that is right.
    Finds,
}

const WORDS: [(&str, Kind); 5] = [
    ("fails ", Kind::Fails),
    ("varies ", Kind::Varies),
    ("leaves out ", Kind::LeavesOut),
    ("slow ", Kind::Slow),
    ("finds ", Kind::Finds),
];

impl KnownResults {
    /// Reads a list.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let lines = text.lines().map(str::trim).enumerate();
        let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let read = |(at, line): (usize, &str)| {
            let found = WORDS.iter().find_map(|(word, kind)| Some((*kind, line.strip_prefix(word)?)));
            let parts = found.and_then(|(kind, rest)| Some((kind, rest.split_once(": ")?)));
            let (kind, (what, reason)) = parts.ok_or_else(|| {
                Failure::new(format!("line {} of the list is not `fails NAME: REASON`: {line}", at + 1))
            })?;
            Ok(Line { kind, what: what.to_owned(), reason: reason.to_owned() })
        };
        Ok(Self { lines: lines.map(read).collect::<Result<_>>()? })
    }

    /// The list for a profile: without optimisation, what is slow is left out.
    pub(crate) fn for_profile(mut self, is_optimised: bool) -> Self {
        if !is_optimised {
            let slow = self.lines.iter_mut().filter(|line| line.kind == Kind::Slow);
            slow.for_each(|line| line.kind = Kind::LeavesOut);
        }
        self
    }

    fn reason(&self, kinds: &[Kind], name: &str) -> Option<&str> {
        let is_meant = |line: &&Line| match line.what.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => line.what == name,
        };
        let found = self.lines.iter().filter(|line| kinds.contains(&line.kind)).find(is_meant);
        found.map(|line| line.reason.as_str())
    }

    /// The names of tests that may fail.
    pub(crate) fn may_fail(&self) -> impl Iterator<Item = &str> {
        let lines = self.lines.iter().filter(|line| matches!(line.kind, Kind::Fails | Kind::Varies));
        lines.map(|line| line.what.as_str())
    }

    /// Why a test may fail.
    pub(crate) fn why_failed(&self, name: &str) -> Option<&str> {
        self.reason(&[Kind::Fails, Kind::Varies], name)
    }

    /// Whether a test must fail.
    pub(crate) fn must_fail(&self, name: &str) -> bool {
        self.reason(&[Kind::Fails], name).is_some()
    }

    /// Tests that are not run, with reasons.
    pub(crate) fn left_out(&self) -> impl Iterator<Item = (&str, &str)> {
        let lines = self.lines.iter().filter(|line| line.kind == Kind::LeavesOut);
        lines.map(|line| (line.what.as_str(), line.reason.as_str()))
    }

    /// Tests that take too long to run with every seed.
    pub(crate) fn slow(&self) -> impl Iterator<Item = &str> {
        let lines = self.lines.iter().filter(|line| line.kind == Kind::Slow);
        lines.map(|line| line.what.as_str())
    }

    /// Why a finding is right.
    pub(crate) fn why_found(&self, text: &str) -> Option<&str> {
        let mut lines = self.lines.iter().filter(|line| line.kind == Kind::Finds);
        lines.find(|line| text.contains(&line.what)).map(|line| line.reason.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_whole_or_starts_and_findings_are_parts() {
        let text = "# comment\n\nfails a::b: one\nvaries a::c*: two\nleaves out d: three\nfinds race in f: four: five\n";
        let known = KnownResults::parse(text).unwrap();
        assert_eq!(known.why_failed("a::b"), Some("one"));
        assert_eq!(known.why_failed("a::cat"), Some("two"));
        assert!(known.must_fail("a::b") && !known.must_fail("a::cat") && !known.must_fail("a::bb"));
        assert_eq!(known.left_out().collect::<Vec<_>>(), [("d", "three")]);
        assert_eq!(known.why_found("a race in f"), Some("four: five"));
        assert!(known.why_found("a race").is_none());
    }

    #[test]
    fn a_line_that_is_no_result_is_named() {
        let failure = KnownResults::parse("fails a: b\nfalis c: d").err().unwrap().to_string();
        assert!(failure.contains("line 2") && failure.contains("falis"), "{failure}");
    }

    #[test]
    fn what_is_slow_is_left_out_without_optimisation() {
        let left_out = |is_optimised| {
            let known =
                KnownResults::parse("slow a: long\nleaves out b: two").unwrap().for_profile(is_optimised);
            known.left_out().map(|(name, _)| name.to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(
            (left_out(true), left_out(false)),
            (vec!["b".to_owned()], vec!["a".to_owned(), "b".to_owned()])
        );
        let slow = |is_optimised| {
            let known = KnownResults::parse("slow a: long").unwrap().for_profile(is_optimised);
            known.slow().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!((slow(true), slow(false)), (vec!["a".to_owned()], vec![]));
    }

    #[test]
    fn the_lists_can_be_read() {
        for text in [include_str!("cudarc.txt"), include_str!("cubecl.txt"), include_str!("numba.txt")] {
            KnownResults::parse(text).unwrap();
        }
    }
}
