//! The report of a run.

use std::fmt;

use crate::check::finding::{Finding, FindingKind};
use crate::fault_plan::FaultPlan;
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
    /// Planned faults that did not come: the run ended before, or the machine has no such device. They are no findings.
    pub faults_to_come: FaultPlan,
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
        let Self { findings, dropped, commands, mode, faults_to_come } = self;
        let plural = if *commands == 1 { "" } else { "s" };
        if findings.is_empty() {
            write!(f, "{commands} command{plural} with {mode}: nothing found")?;
            return write_to_come(f, faults_to_come);
        }
        write!(f, "{commands} command{plural} with {mode}: {} found", findings.len())?;
        for (at, finding) in findings.iter().enumerate() {
            write!(f, "\n{:3}. {finding}", at + 1)?;
        }
        if *dropped > 0 {
            write!(f, "\n     and {dropped} more")?;
        }
        write_to_come(f, faults_to_come)
    }
}

fn write_to_come(f: &mut fmt::Formatter<'_>, faults: &FaultPlan) -> fmt::Result {
    match faults.faults.is_empty() {
        true => Ok(()),
        false => write!(f, "\nplanned, and did not come: {faults}"),
    }
}
