//! Writes down what the checks of the device found.

use std::panic::Location;
use std::sync::Arc;

use kiln_driver::{DeviceFinding, FindingLine, FindingRule};
use kiln_order::Stamp;
use kiln_trace::{FindingRecord, RecordingLane, TraceEvent, TraceLine, interned_name};

use super::stream_lanes::StreamLanes;
use crate::findings::LeftOut;

/// Bytes of what is said of a finding: a recording cuts names that are longer than a little more. The end says how to see it again.
const MAX_BYTES: usize = 1000;
const LAST_BYTES: usize = 240;

/// The findings of one device.
pub(super) struct FindingNotes {
    lanes: Arc<StreamLanes>,
    host: Arc<RecordingLane>,
}

/// A finding, and what is known of the work it belongs to.
pub(super) struct FoundIn<'f> {
    pub(super) finding: &'f DeviceFinding,
    pub(super) stamp: Option<Stamp>,
    /// Which line submitted it.
    pub(super) submitted: Option<&'static Location<'static>>,
    /// When it ended.
    pub(super) end_ns: Option<u64>,
}

impl FindingNotes {
    pub(super) fn new(lanes: Arc<StreamLanes>, host: Arc<RecordingLane>) -> Self {
        Self { lanes, host }
    }

    /// Records findings in the order of their times.
    pub(super) fn note<'f>(&self, found: impl Iterator<Item = FoundIn<'f>>) {
        let now = self.lanes.now();
        let mut records: Vec<FindingRecord<'static>> = found.map(|found| self.record(found, now)).collect();
        records.sort_by_key(|record| record.time_ns);
        records.into_iter().for_each(|record| self.host.push(TraceEvent::Finding(record)));
    }

    /// Records that there were more, of a kind if that is known.
    pub(super) fn note_more(&self, (more, kind): &LeftOut) {
        let (device, time_ns, more) = (self.lanes.device(), self.lanes.now(), *more);
        let counted = FindingRecord { device, time_ns, more, ..FindingRecord::default() };
        let record = match kind {
            None => counted,
            Some(kind) => FindingRecord {
                rule: in_words(kind.rule),
                kernel: kind.kernel.as_deref().map(interned_name).unwrap_or_default(),
                line: kind.line.as_ref().map(trace_line),
                ..counted
            },
        };
        self.host.push(TraceEvent::Finding(record));
    }

    fn record(&self, found: FoundIn<'_>, now: u64) -> FindingRecord<'static> {
        let FoundIn { finding, stamp, submitted, end_ns } = found;
        FindingRecord {
            device: self.lanes.device(),
            rule: in_words(finding.rule),
            kernel: finding.kernel.as_deref().map(interned_name).unwrap_or_default(),
            line: finding.line.as_ref().map(trace_line),
            message: interned_name(&shortened(&finding.text)),
            stamp: stamp.map(|stamp| self.lanes.stamp(stamp)),
            submitted: submitted.map(|at| TraceLine { file: at.file(), line: at.line() }),
            time_ns: end_ns.unwrap_or(now),
            more: 0,
        }
    }
}

fn trace_line(line: &FindingLine) -> TraceLine<'static> {
    TraceLine { file: interned_name(&line.file), line: line.line }
}

/// A text in one line, as far as there is room: its beginning and its end.
fn shortened(text: &str) -> String {
    let said = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if said.len() <= MAX_BYTES {
        return said;
    }
    let boundary = |mut at: usize| {
        while !said.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let (first, last) = (boundary(MAX_BYTES - LAST_BYTES), boundary(said.len() - LAST_BYTES));
    format!("{} … {}", said.get(..first).unwrap_or_default(), said.get(last..).unwrap_or_default())
}

fn in_words(rule: FindingRule) -> &'static str {
    match rule {
        FindingRule::Race => "race",
        FindingRule::Undeclared => "undeclared access",
        FindingRule::OutOfBounds => "access out of bounds",
        FindingRule::UseAfterFree => "use after free",
        FindingRule::FreeBeforeDone => "free before the last use is done",
        FindingRule::UseBeforeAllocation => "use before allocation",
        FindingRule::Uninitialised => "read of bytes that were never written",
        FindingRule::DoubleFree => "double free",
        FindingRule::ReadOnly => "write to read-only memory",
        FindingRule::Misaligned => "misaligned access",
        FindingRule::Synchronisation => "wrong synchronisation",
        FindingRule::Lifetime => "object used after its end",
        FindingRule::Leak => "leak",
        FindingRule::Hang => "work that does not end",
        FindingRule::InKernel => "mistake in a kernel",
        _ => "mistake",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_keeps_its_end_and_a_short_one_is_whole() {
        assert_eq!(shortened("two\n  words"), "two words");
        let text = format!("begin {} Repeat with seed 7.", "é".repeat(3000));
        let short = shortened(&text);
        assert!(short.starts_with("begin é") && short.ends_with("é Repeat with seed 7."), "{short}");
        assert!(short.len() <= kiln_trace::MAX_NAME_BYTES, "{}", short.len());
    }

    #[test]
    fn every_rule_has_words() {
        let mut words: Vec<&str> = FindingRule::ALL.into_iter().map(in_words).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), FindingRule::ALL.len());
        assert!(!words.contains(&"mistake"));
    }
}
