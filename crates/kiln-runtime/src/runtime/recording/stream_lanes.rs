//! The lanes of a recording, one for each stream, and the clock of its events.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use kiln_driver::Driver;
use kiln_order::{MAX_STREAMS, Need, Stamp, StreamKey, WaitObserver};
use kiln_trace::{
    KnownName, ProgramRecorder, RecordingClock, StreamLane, TraceStamp, TraceStream, WaitNote, WaitReason,
};

use super::tick_clock::{ClockStart, TickClock};
use super::{noted_needs, work_context};

/// The lanes of streams by their keys, each once it is used.
pub(super) type LaneTable = Arc<[OnceLock<Arc<StreamLane>>]>;

/// What a recording shares with the order, which tells it of waits.
pub(crate) struct StreamLanes {
    clock: Arc<TickClock>,
    lanes: LaneTable,
    device: u32,
    recorder: Arc<ProgramRecorder>,
    /// The blocks that are alive and were allocated since the recording began.
    blocks: Mutex<HashMap<u64, KnownBlock>>,
}

/// What is known of a block.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KnownBlock {
    pub(super) tag: &'static str,
    /// What was submitted to its stream when it was allocated. Other streams come after that, although it did not write the block.
    pub(super) behind: Stamp,
}

impl StreamLanes {
    pub(super) fn new(
        recorder: Arc<ProgramRecorder>,
        driver: Arc<dyn Driver>,
        clock: RecordingClock,
        device: u32,
        start: ClockStart,
    ) -> Self {
        let clock = Arc::new(TickClock::new(driver, clock, start));
        let lanes = (0..MAX_STREAMS).map(|_| OnceLock::new()).collect();
        Self { recorder, clock, device, lanes, blocks: Mutex::default() }
    }

    pub(super) fn table(&self) -> &LaneTable {
        &self.lanes
    }

    /// Whether ticks are those of the processor's counter.
    pub(super) fn counts(&self) -> bool {
        self.clock.counts()
    }

    pub(super) fn recorder(&self) -> &ProgramRecorder {
        &self.recorder
    }

    pub(super) fn device(&self) -> u32 {
        self.device
    }

    /// The time of the recording.
    pub(super) fn now(&self) -> u64 {
        self.clock.now()
    }

    /// The time of the recording when the device's clock says this.
    pub(super) fn time_at(&self, clock: Duration) -> u64 {
        self.clock.time_at(clock)
    }

    /// The same as a submission takes it.
    #[inline]
    pub(super) fn ticks(&self) -> u64 {
        self.clock.ticks()
    }

    /// The notes of a stream.
    #[inline]
    pub(super) fn of(&self, stream: StreamKey) -> Option<&StreamLane> {
        let lane = self.lanes.get(stream.index())?;
        Some(match lane.get() {
            Some(lane) => lane,
            None => self.begin(stream, lane),
        })
    }

    #[cold]
    #[inline(never)]
    fn begin<'a>(&self, stream: StreamKey, lane: &'a OnceLock<Arc<StreamLane>>) -> &'a StreamLane {
        lane.get_or_init(|| {
            let stream = TraceStream { device: self.device, stream: stream.index() as u32 };
            self.recorder.stream_lane(stream, self.clock.clone())
        })
    }

    /// A submission as the recording names it.
    pub(super) fn stamp(&self, stamp: Stamp) -> TraceStamp {
        let stream = TraceStream { device: self.device, stream: stamp.stream.index() as u32 };
        TraceStamp { stream, number: stamp.number }
    }

    pub(super) fn note_block(&self, number: u64, block: KnownBlock) {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner).insert(number, block);
    }

    pub(super) fn forget_block(&self, number: u64) {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
    }

    fn block(&self, number: u64) -> KnownBlock {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner).get(&number).copied().unwrap_or_default()
    }

    /// What tells it from other recordings in the same thread.
    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

impl WaitObserver for StreamLanes {
    fn needs(&self, need: &Need) {
        noted_needs::note(self.address(), need);
    }

    fn waits(&self, waiter: Stamp, needed: Stamp, covers: u64) {
        let found = noted_needs::find(self.address(), waiter, needed);
        let Some(lane) = self.of(waiter.stream) else { return };
        let known = found.map(|(block, reason)| {
            let KnownBlock { tag, behind } = self.block(block);
            let reason = if behind == needed { WaitReason::Allocation } else { reason };
            (reason, (short(block), KnownName::of(tag)))
        });
        let is_asked = known.is_none() && work_context::asks_for_order();
        let without_block = if is_asked { WaitReason::Asked } else { WaitReason::Unknown };
        lane.waits(&WaitNote {
            waiter: waiter.number,
            writer: self.stamp(needed),
            covers,
            reason: known.map_or(without_block, |(reason, _)| reason),
            block: known.map(|(_, block)| block),
            line: if is_asked { work_context::line() } else { None },
            time: self.ticks(),
        });
    }

    fn refused(&self, _: Stamp) {
        noted_needs::forget();
    }
}

/// The number of a block as messages show it.
pub(super) fn short(block: u64) -> u64 {
    block & ((1 << crate::ids::BlockId::NUMBER_BITS) - 1)
}
