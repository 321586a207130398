//! The mistakes that the checks of devices found.

use super::explanation::{ExplainedFinding, WorkName};
use crate::record::FindingRecord;

/// How many are named.
const MAX_NAMED: usize = 10;

/// The first findings of a recording, and how many there are.
#[derive(Default)]
pub(super) struct FindingList {
    pub(super) named: Vec<ExplainedFinding>,
    pub(super) count: u64,
}

impl FindingList {
    pub(super) fn add(&mut self, finding: &FindingRecord<'_>) {
        if finding.more > 0 {
            self.count = self.count.saturating_add(finding.more);
            return;
        }
        self.count = self.count.saturating_add(1);
        if self.named.len() >= MAX_NAMED {
            return;
        }
        let work = finding.stamp.map(|stamp| WorkName {
            name: finding.kernel.to_owned(),
            line: finding.submitted.map(|line| line.to_string()),
            device: stamp.stream.device,
            stream: stamp.stream.stream,
            number: stamp.number,
        });
        self.named.push(ExplainedFinding {
            device: finding.device,
            rule: finding.rule.to_owned(),
            kernel: finding.kernel.to_owned(),
            line: finding.line.map(|line| line.to_string()),
            message: finding.message.to_owned(),
            work,
            time_ns: finding.time_ns,
        });
    }
}
