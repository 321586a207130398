//! The outcome of a launch.

use super::fault::ExecFault;
use super::finding::ExecFinding;

/// The outcome of a launch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecOutcome {
    /// What the checks saw, in the order it was seen.
    pub findings: Vec<ExecFinding>,
    /// How many findings at other places were made and not kept, because of [`Options::max_findings`](super::Options::max_findings).
    pub findings_left_out: u64,
    /// What is worth knowing and may be right.
    pub notes: Vec<ExecFinding>,
    /// What ended it early, if anything did.
    pub fault: Option<ExecFault>,
    /// What the kernel printed.
    pub printed: Vec<u8>,
    /// How much it printed beyond [`Options::max_printed_bytes`](super::Options::max_printed_bytes).
    pub printed_left_out_bytes: u64,
    /// What was executed.
    pub counters: Counters,
}

impl ExecOutcome {
    /// Whether it ran to its end and nothing was found.
    pub fn is_clean(&self) -> bool {
        self.fault.is_none() && self.findings.is_empty()
    }

    /// What the kernel printed, as text.
    pub fn printed_text(&self) -> String {
        String::from_utf8_lossy(&self.printed).into_owned()
    }
}

/// How much was executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Blocks run to their end.
    pub blocks: u64,
    /// Instructions, counted once per warp.
    pub warp_instructions: u64,
    /// Instructions, counted once per thread that executed them.
    pub thread_instructions: u64,
}

impl Counters {
    /// The same, done so many times.
    pub(crate) fn times(self, count: u64) -> Self {
        Self {
            blocks: self.blocks.saturating_mul(count),
            warp_instructions: self.warp_instructions.saturating_mul(count),
            thread_instructions: self.thread_instructions.saturating_mul(count),
        }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.blocks += other.blocks;
        self.warp_instructions += other.warp_instructions;
        self.thread_instructions += other.thread_instructions;
    }
}
