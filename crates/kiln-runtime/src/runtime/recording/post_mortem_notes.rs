//! Writes down what is known of the loss of a device.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use kiln_trace::{MAX_NAME_BYTES, PostMortemRecord, RecordingLane, TraceEvent, interned_name};

use super::stream_lanes::StreamLanes;
use crate::device_state::{Cause, Phase};
use crate::ids::Generation;
use crate::runtime::inner::Inner;

/// Losses that are recorded; their texts are kept for ever.
const MAX_LOSSES: u32 = 16;
/// Lines of each.
const MAX_LINES: usize = 100;
/// Streams with work under way that are named.
const MAX_STREAMS: usize = 8;

/// The post-mortems of one device, a limited number.
pub(super) struct PostMortemNotes {
    lanes: Arc<StreamLanes>,
    host: Arc<RecordingLane>,
    losses: AtomicU32,
    /// The number behind the last generation whose end was recorded.
    until: AtomicU64,
}

impl PostMortemNotes {
    pub(super) fn new(lanes: Arc<StreamLanes>, host: Arc<RecordingLane>) -> Self {
        Self { lanes, host, losses: AtomicU32::new(0), until: AtomicU64::new(0) }
    }

    /// Records what is known of the end of a generation, once.
    pub(super) fn note(&self, ended: Generation, text: &dyn Display) {
        let is_known = self.until.fetch_max(ended.0.saturating_add(1), Ordering::Relaxed) > ended.0;
        if is_known || self.losses.fetch_add(1, Ordering::Relaxed) >= MAX_LOSSES {
            return;
        }
        let (device, time_ns) = (self.lanes.device(), self.lanes.now());
        let generation = u32::try_from(ended.0).unwrap_or(u32::MAX);
        for line in text.to_string().lines().take(MAX_LINES) {
            let line = interned_name(line.get(..MAX_NAME_BYTES).unwrap_or(line));
            let record = PostMortemRecord { device, generation, line, time_ns };
            self.host.push(TraceEvent::PostMortem(record));
        }
    }

    /// Records the loss of a device of this process, which nothing brings back. A device in a worker process has a report of its takeover instead, as
    /// long as it is brought back.
    pub(super) fn note_loss(&self, runtime: &Inner) {
        let state = runtime.state();
        if state.phase() != Phase::Failed {
            return;
        }
        if let Some(cause) = state.fault() {
            self.note(state.generation(), &LostDevice { cause: &cause, runtime });
        }
    }
}

/// What is known of a device that was not brought back.
struct LostDevice<'l> {
    cause: &'l Cause,
    runtime: &'l Inner,
}

impl Display for LostDevice<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tracker = self.runtime.tracker();
        writeln!(f, "device lost: {}", self.cause)?;
        let latest = tracker.latest_stamps();
        let mut left: Vec<_> =
            latest.into_iter().filter(|last| last.number > 0 && !tracker.host().covers(*last)).collect();
        left.sort_by_key(|last| last.stream.index());
        if left.is_empty() {
            writeln!(f, "  under way nothing")?;
        }
        for (at, last) in left.iter().take(MAX_STREAMS).enumerate() {
            let head = if at == 0 { "under way" } else { "" };
            let (stream, number) = (last.stream.index(), last.number);
            writeln!(
                f,
                "  {head:9} stream {stream}: work up to submission {number} is not known to be done"
            )?;
        }
        if let Some(more @ 1..) = left.len().checked_sub(MAX_STREAMS) {
            writeln!(f, "            and {more} more streams")?;
        }
        writeln!(f, "  lost      all memory of the device: it was not brought back")
    }
}
