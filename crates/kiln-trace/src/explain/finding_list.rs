//! The mistakes that the checks of devices found.

use super::explanation::{ExplainedFinding, WorkName};
use crate::record::FindingRecord;

/// How many are named.
const MAX_NAMED: usize = 10;

/// The findings of a recording, repeats of one counted with it: the first different ones, and how many there are altogether.
#[derive(Default)]
pub(super) struct FindingList {
    pub(super) named: Vec<ExplainedFinding>,
    pub(super) count: u64,
}

impl FindingList {
    pub(super) fn add(&mut self, finding: &FindingRecord<'_>) {
        let times = finding.more.max(1);
        self.count = self.count.saturating_add(times);
        let line = finding.line.map(|line| line.to_string());
        let is_repeat = |known: &&mut ExplainedFinding| {
            known.rule == finding.rule && known.kernel == finding.kernel && known.line == line
        };
        if let Some(known) = self.named.iter_mut().find(is_repeat) {
            known.times = known.times.saturating_add(times);
            return;
        }
        // Of those that are only counted it is not known what they say.
        if finding.more > 0 || self.named.len() >= MAX_NAMED {
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
            line,
            message: finding.message.to_owned(),
            work,
            time_ns: finding.time_ns,
            times,
        });
    }
}
