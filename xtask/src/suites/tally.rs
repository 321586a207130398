//! The results of a suite, counted and compared with what is known of it.

use std::collections::{BTreeMap, BTreeSet};

use crate::failure::{Failure, Result};
use crate::suites::known_results::KnownResults;

/// How a test ended.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    Passed,
    /// Why it was not run, if that was said.
    Skipped(String),
    Failed,
}

/// All results.
#[derive(Default)]
pub(crate) struct Tally {
    outcomes: BTreeMap<String, Outcome>,
    /// Tests that were skipped without a name, by reason.
    unnamed: BTreeMap<String, u64>,
    findings: BTreeSet<String>,
}

impl Tally {
    /// Takes the result of a test. Of several runs the worst counts.
    pub(crate) fn add(&mut self, name: &str, outcome: Outcome) {
        let known = self.outcomes.entry(name.to_owned()).or_insert_with(|| outcome.clone());
        *known = outcome.max(known.clone());
    }

    /// The test was run again, alone: only that counts.
    pub(crate) fn replace(&mut self, name: &str, outcome: Outcome) {
        self.outcomes.insert(name.to_owned(), outcome);
    }

    pub(crate) fn add_skipped(&mut self, reason: &str, count: u64) {
        *self.unnamed.entry(reason.to_owned()).or_default() += count;
    }

    pub(crate) fn add_findings(&mut self, texts: Vec<String>) {
        self.findings.extend(
            texts.into_iter().map(|text| text.split(" Repeat with").next().unwrap_or_default().to_owned()),
        );
    }

    /// The names of tests that failed.
    pub(crate) fn failed(&self) -> Vec<String> {
        let failed = self.outcomes.iter().filter(|(_, outcome)| **outcome == Outcome::Failed);
        failed.map(|(name, _)| name.clone()).collect()
    }

    /// Prints the totals and everything by reason; fails if something is not as it is known. `is_whole` says whether all tests were run.
    pub(crate) fn judge(&self, known: &KnownResults, is_whole: bool) -> Result {
        let count = |is_meant: fn(&Outcome) -> bool| {
            self.outcomes.values().filter(|outcome| is_meant(outcome)).count() as u64
        };
        let passed = count(|outcome| *outcome == Outcome::Passed);
        let failed = count(|outcome| *outcome == Outcome::Failed);
        let skipped =
            count(|outcome| matches!(outcome, Outcome::Skipped(_))) + self.unnamed.values().sum::<u64>();
        let mut surprises = Vec::new();
        by_reason(
            "failed",
            self.failed().iter().map(|name| {
                let why = known.why_failed(name);
                if why.is_none() {
                    surprises.push(format!("{name} failed"));
                }
                (why.unwrap_or("not known").to_owned(), 1)
            }),
        );
        let named = self.outcomes.values().filter_map(|outcome| match outcome {
            Outcome::Skipped(reason) => Some((reason.clone(), 1)),
            _ => None,
        });
        by_reason(
            "skipped",
            named.chain(self.unnamed.iter().map(|(reason, count)| (reason.clone(), *count))),
        );
        by_reason(
            "findings",
            self.findings.iter().map(|text| {
                let why = known.why_found(text);
                if why.is_none() {
                    surprises.push(format!("found: {text}"));
                }
                (why.unwrap_or("not known").to_owned(), 1)
            }),
        );
        for (name, reason) in known.left_out() {
            println!("left out: {name}: {reason}");
        }
        let passing = self.outcomes.iter().filter(|(_, outcome)| **outcome == Outcome::Passed);
        surprises.extend(
            passing
                .filter(|(name, _)| known.must_fail(name))
                .map(|(name, _)| format!("{name} passed; take it from the list")),
        );
        let run = passed + failed;
        let share = if run == 0 { 0.0 } else { passed as f64 * 100.0 / run as f64 };
        println!("{passed} passed, {failed} failed, {skipped} skipped; {share:.1} % of what was run");
        if run == 0 && is_whole {
            surprises.push("no test was run".to_owned());
        }
        if surprises.is_empty() {
            return Ok(());
        }
        Err(Failure::new(format!("not as it is known:\n  {}", surprises.join("\n  "))))
    }
}

/// Prints how much there is of each reason, most first.
fn by_reason(what: &str, all: impl Iterator<Item = (String, u64)>) {
    let mut counts = BTreeMap::<String, u64>::new();
    for (reason, count) in all {
        *counts.entry(reason).or_default() += count;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    for (reason, count) in counts {
        println!("{what}: {count:4}  {reason}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(tally: &Tally, list: &str) -> Option<String> {
        tally.judge(&KnownResults::parse(list).unwrap(), true).err().map(|failure| failure.to_string())
    }

    #[test]
    fn what_is_not_on_the_list_fails_and_what_is_has_to_happen() {
        let mut tally = Tally::default();
        tally.add("a", Outcome::Passed);
        tally.add("b", Outcome::Failed);
        tally.add("b", Outcome::Passed);
        tally.add("c", Outcome::Skipped("no reason".into()));
        tally.add_findings(vec![
            "race of x. Repeat with seed 1.".into(),
            "race of x. Repeat with seed 2.".into(),
        ]);
        assert_eq!((tally.failed(), tally.findings.len()), (vec!["b".to_owned()], 1));
        let told = judged(&tally, "").unwrap();
        assert!(told.contains("b failed") && told.contains("found: race of x"), "{told}");
        assert_eq!(judged(&tally, "fails b: theirs\nfinds of x: theirs"), None);
        assert!(
            judged(&tally, "fails b: theirs\nfinds of x: theirs\nfails a: theirs")
                .unwrap()
                .contains("a passed")
        );
        tally.replace("b", Outcome::Passed);
        assert_eq!(judged(&tally, "varies b: theirs\nfinds of x: theirs"), None);
        assert!(judged(&Tally::default(), "").unwrap().contains("no test was run"));
    }
}
