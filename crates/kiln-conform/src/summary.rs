//! The summary of a run.

use std::fmt;

use crate::law::{Failure, Law};

/// What became of each law.
#[derive(Clone, Debug)]
pub struct Summary {
    pub(crate) subject: String,
    pub(crate) results: Vec<LawResult>,
    /// Exclusions that name no law.
    pub(crate) unknown_exclusions: Vec<&'static str>,
}

/// What became of one law.
#[derive(Clone, Debug)]
pub struct LawResult {
    /// The law.
    pub law: &'static Law,
    /// How it ended.
    pub outcome: LawOutcome,
}

/// How a law ended.
#[derive(Clone, Debug)]
pub enum LawOutcome {
    /// The driver keeps it.
    Passed,
    /// It does not.
    Failed(LawReport),
    /// It does not, and is excused.
    Excluded(&'static str),
    /// It is excused, and keeps it.
    UnexpectedPass(&'static str),
    /// There is nothing to show on this device.
    Inapplicable(String),
    /// There is no device.
    Skipped(String),
}

/// A failure in words, and how to see it again.
#[derive(Clone, Debug)]
pub struct LawReport {
    /// What was expected and seen, and where.
    pub text: String,
    /// The round in which it was seen.
    pub round: u64,
}

impl LawReport {
    pub(crate) fn of(failure: &Failure, round: u64) -> Self {
        Self { text: failure.to_string(), round }
    }
}

impl LawOutcome {
    fn is_failure(&self) -> bool {
        matches!(self, Self::Failed(_) | Self::UnexpectedPass(_))
    }
}

impl Summary {
    /// Whether every law is kept, excused or without object, and every exclusion is needed.
    pub fn holds(&self) -> bool {
        self.failed() == 0 && self.unknown_exclusions.is_empty()
    }

    /// What became of each law, in reading order.
    pub fn results(&self) -> &[LawResult] {
        &self.results
    }

    /// Laws that are kept.
    pub fn passed(&self) -> usize {
        self.count(|outcome| matches!(outcome, LawOutcome::Passed))
    }

    /// Laws that are not kept, and exclusions that are not needed.
    pub fn failed(&self) -> usize {
        self.count(LawOutcome::is_failure)
    }

    /// Laws the subject is excused from.
    pub fn excluded(&self) -> usize {
        self.count(|outcome| matches!(outcome, LawOutcome::Excluded(_)))
    }

    /// Laws that were not run, because there is no device or nothing to show on it.
    pub fn skipped(&self) -> usize {
        self.count(|outcome| matches!(outcome, LawOutcome::Inapplicable(_) | LawOutcome::Skipped(_)))
    }

    /// Both summaries as one.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.results.extend(other.results);
        self.unknown_exclusions.extend(other.unknown_exclusions);
        self.unknown_exclusions.sort_unstable();
        self.unknown_exclusions.dedup();
        self
    }

    fn count(&self, wanted: impl Fn(&LawOutcome) -> bool) -> usize {
        self.results.iter().filter(|result| wanted(&result.outcome)).count()
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for result in &self.results {
            writeln!(f, "{result}")?;
        }
        for name in &self.unknown_exclusions {
            writeln!(f, "FAILED     exclusion of {name}, which is no law")?;
        }
        let failed = self.failed() + self.unknown_exclusions.len();
        let (passed, excluded, skipped) = (self.passed(), self.excluded(), self.skipped());
        write!(
            f,
            "laws on {}: {passed} passed, {failed} failed, {excluded} excluded, {skipped} skipped",
            self.subject
        )
    }
}

impl fmt::Display for LawResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Law { name, says, .. } = self.law;
        match &self.outcome {
            LawOutcome::Passed => write!(f, "ok         {name}"),
            LawOutcome::Failed(LawReport { text, round }) => {
                write!(f, "FAILED     {name}: {says}\n           round {round}: {text}")
            }
            LawOutcome::Excluded(reason) => write!(f, "excluded   {name}: {reason}"),
            LawOutcome::UnexpectedPass(reason) => {
                write!(
                    f,
                    "FAILED     {name}: it is kept although it is excluded ({reason}); drop the exclusion"
                )
            }
            LawOutcome::Inapplicable(reason) | LawOutcome::Skipped(reason) => {
                write!(f, "skipped    {name}: {reason}")
            }
        }
    }
}
