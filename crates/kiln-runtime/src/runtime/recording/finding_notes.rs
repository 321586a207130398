//! Writes down what the checks of the device found.

use std::panic::Location;
use std::sync::Arc;

use kiln_driver::{DeviceFinding, FindingLine};
use kiln_order::Stamp;
use kiln_trace::{FindingRecord, RecordingLane, TraceEvent, TraceLine, finding_message, interned_name};

use super::stream_lanes::StreamLanes;
use crate::findings::LeftOut;

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
                rule: kind.rule.words(),
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
            rule: finding.rule.words(),
            kernel: finding.kernel.as_deref().map(interned_name).unwrap_or_default(),
            line: finding.line.as_ref().map(trace_line),
            message: interned_name(&finding_message(&finding.text)),
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
