//! What a launch found or printed beyond the limits.

use std::fmt;

use kiln_sim::Machine;
use serde::Serialize;

use crate::plural::{counted, was};

/// What was counted and not kept.
#[derive(Clone, Copy, Default, PartialEq, Eq, Serialize, Debug)]
pub(crate) struct LeftOut {
    /// Findings at other places.
    pub(crate) findings: u64,
    /// Bytes that the kernel printed.
    pub(crate) printed_bytes: u64,
}

impl LeftOut {
    pub(super) fn of(machine: &Machine) -> Self {
        Self { findings: machine.findings_left_out(), printed_bytes: machine.printed_left_out_bytes() }
    }

    /// The larger of both, for two runs that are expected to say the same.
    pub(crate) fn max(self, other: Self) -> Self {
        Self {
            findings: self.findings.max(other.findings),
            printed_bytes: self.printed_bytes.max(other.printed_bytes),
        }
    }
}

impl fmt::Display for LeftOut {
    /// A line for each kind, each after a line end; nothing if nothing was left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.findings > 0 {
            let (more, was) = (counted(self.findings, "more finding"), was(self.findings));
            write!(f, "\n     {more} {was} left out; --max-findings N keeps more")?;
        }
        if self.printed_bytes > 0 {
            let (more, was) = (counted(self.printed_bytes, "more byte"), was(self.printed_bytes));
            write!(f, "\n     {more} of printed text {was} left out; --max-printed BYTES keeps more")?;
        }
        Ok(())
    }
}
