//! Rows of the timeline.

use kiln_trace::TraceStream;
use serde::{Serialize, Serializer};

/// What a row shows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum RowKind {
    /// The work of a stream.
    Stream {
        /// The device.
        device: u32,
        /// The stream.
        stream: u32,
    },
    /// The waits of a thread of the program.
    Thread {
        /// The thread.
        thread: u32,
        /// The clock of the devices that it waited for.
        clock: u32,
    },
}

/// A row of the timeline.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct TimelineRow {
    /// What it shows.
    #[serde(flatten)]
    pub kind: RowKind,
    /// What it is called; empty if the recording does not say.
    pub name: String,
    /// How much work, or how many waits.
    pub count: u64,
    /// Work whose time on the device was not measured: it is drawn where the host submitted it.
    pub untimed: u64,
    /// When the first of it began; 0 for the page if there is none, since the largest number is none that a page can read exactly.
    #[serde(serialize_with = "beginning")]
    pub begin_ns: u64,
    /// When the last of it ended.
    pub end_ns: u64,
}

impl RowKind {
    pub(crate) fn of(stream: TraceStream) -> Self {
        Self::Stream { device: stream.device, stream: stream.stream }
    }
}

impl TimelineRow {
    pub(crate) fn new(kind: RowKind) -> Self {
        Self { kind, name: String::new(), count: 0, untimed: 0, begin_ns: u64::MAX, end_ns: 0 }
    }
}

fn beginning<S: Serializer>(begin_ns: &u64, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(if *begin_ns == u64::MAX { 0 } else { *begin_ns })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
mod tests {
    use super::*;

    #[test]
    fn a_row_without_work_begins_at_zero() {
        let mut row = TimelineRow::new(RowKind::Stream { device: 0, stream: 0 });
        let begin = |row: &TimelineRow| serde_json::to_value(row).unwrap()["begin_ns"].as_u64();
        assert_eq!(begin(&row), Some(0));
        row.begin_ns = row.begin_ns.min(7);
        assert_eq!(begin(&row), Some(7));
    }
}
