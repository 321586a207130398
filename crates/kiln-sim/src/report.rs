//! The report of a run.

use std::fmt;

use crate::check::finding::{Finding, FindingKind};
use crate::machine_config::Mode;

/// What a machine found, at the end.
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use]
pub struct SimReport {
    /// What was found, in the order it was.
    pub findings: Vec<Finding>,
    /// Findings beyond the limit, which were counted and dropped.
    pub dropped: u64,
    /// Commands that ran.
    pub commands: u64,
    /// How the run was driven.
    pub mode: Mode,
}

impl SimReport {
    /// Whether nothing was found.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    /// How many findings there are of a kind.
    pub fn count(&self, kind: &FindingKind) -> usize {
        self.findings.iter().filter(|finding| finding.kind == *kind).count()
    }
}

impl fmt::Display for SimReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { findings, dropped, commands, mode } = self;
        let plural = if *commands == 1 { "" } else { "s" };
        if findings.is_empty() {
            return write!(f, "{commands} command{plural} with {mode}: nothing found");
        }
        write!(f, "{commands} command{plural} with {mode}: {} found", findings.len())?;
        for (at, finding) in findings.iter().enumerate() {
            write!(f, "\n{:3}. {finding}", at + 1)?;
        }
        match dropped {
            0 => Ok(()),
            dropped => write!(f, "\n     and {dropped} more"),
        }
    }
}
