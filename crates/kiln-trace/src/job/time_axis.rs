//! The clocks of several recordings: times of ranks are compared only where there is one, or where two are put together.

use std::collections::{BTreeMap, BTreeSet};

use super::rank_log::{RankCall, RankLog};
use crate::record::RecordingClock;

/// One clock of one recording. Times on it can be compared with each other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct TimeAxis {
    /// The recording.
    pub(super) recording: usize,
    /// Which of its clocks.
    pub(super) clock: u32,
}

/// The clocks on which recordings have collectives.
#[derive(Default)]
pub(super) struct TimeAxes {
    kinds: BTreeMap<TimeAxis, RecordingClock>,
}

impl TimeAxes {
    pub(super) fn of(logs: &[&RankLog]) -> Self {
        let calls =
            logs.iter().enumerate().flat_map(|(at, log)| log.calls().iter().map(move |call| (at, log, call)));
        let kinds = calls.map(|(recording, log, call)| (axis_of(recording, log, call), log.clock_kind(call)));
        Self { kinds: kinds.collect() }
    }

    /// The axes, by recording.
    pub(super) fn all(&self) -> impl Iterator<Item = TimeAxis> {
        self.kinds.keys().copied()
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.kinds.len()
    }

    /// Whether there are some and all are those of simulated machines.
    pub(super) fn are_virtual(&self) -> bool {
        self.count() > 0 && self.kinds.values().all(|kind| *kind == RecordingClock::Virtual)
    }

    /// Whether there is at most one in each recording, and all are those of hosts.
    pub(super) fn are_of_hosts(&self) -> bool {
        let recordings: BTreeSet<usize> = self.kinds.keys().map(|axis| axis.recording).collect();
        recordings.len() == self.count() && self.kinds.values().all(|kind| *kind == RecordingClock::Wall)
    }
}

/// The axis of a call.
pub(super) fn axis_of(recording: usize, log: &RankLog, call: &RankCall) -> TimeAxis {
    TimeAxis { recording, clock: log.clock(call) }
}
