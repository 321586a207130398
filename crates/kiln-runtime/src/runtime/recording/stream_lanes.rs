//! The lanes of a recording, one for each stream, and the clock of its events.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use kiln_driver::Driver;
use kiln_order::{MAX_STREAMS, Stamp, StreamKey, WaitObserver};
use kiln_trace::{
    AwaitedBlock, ProgramRecorder, RecordingLane, StreamWaitRecord, TraceEvent, TraceStamp, TraceStream,
    WaitReason,
};

use super::noted_uses;

/// What a recording shares with the order, which tells it of waits.
pub(crate) struct StreamLanes {
    recorder: Arc<ProgramRecorder>,
    driver: Arc<dyn Driver>,
    device: u32,
    /// What the device's clock said when its recording began, and what the time of the recording was then.
    began: Duration,
    began_ns: u64,
    lanes: Vec<OnceLock<Arc<RecordingLane>>>,
    /// Tags of the blocks that are alive and were allocated since the recording began.
    tags: Mutex<HashMap<u64, &'static str>>,
}

impl StreamLanes {
    pub(super) fn new(
        recorder: Arc<ProgramRecorder>,
        driver: Arc<dyn Driver>,
        device: u32,
        began_ns: u64,
    ) -> Self {
        let began = driver.clock().now();
        let lanes = (0..MAX_STREAMS).map(|_| OnceLock::new()).collect();
        Self { recorder, driver, device, began, began_ns, lanes, tags: Mutex::default() }
    }

    pub(super) fn recorder(&self) -> &ProgramRecorder {
        &self.recorder
    }

    pub(super) fn device(&self) -> u32 {
        self.device
    }

    /// The time of the recording.
    pub(super) fn now(&self) -> u64 {
        self.time_of(self.driver.clock().now())
    }

    /// A time of the device's clock as a time of the recording.
    pub(super) fn time_of(&self, at: Duration) -> u64 {
        let since = u64::try_from(at.saturating_sub(self.began).as_nanos()).unwrap_or(u64::MAX);
        self.began_ns.saturating_add(since)
    }

    /// Adds an event of a stream.
    pub(super) fn push(&self, stream: StreamKey, event: TraceEvent<'static>) {
        if let Some(lane) = self.lanes.get(stream.index()) {
            lane.get_or_init(|| self.recorder.lane()).push(event);
        }
    }

    /// A submission as the recording names it.
    pub(super) fn stamp(&self, stamp: Stamp) -> TraceStamp {
        let stream = TraceStream { device: self.device, stream: stamp.stream.index() as u32 };
        TraceStamp { stream, number: stamp.number }
    }

    pub(super) fn note_tag(&self, block: u64, tag: &'static str) {
        self.tags.lock().unwrap_or_else(PoisonError::into_inner).insert(block, tag);
    }

    pub(super) fn forget_tag(&self, block: u64) {
        self.tags.lock().unwrap_or_else(PoisonError::into_inner).remove(&block);
    }

    fn tag(&self, block: u64) -> &'static str {
        self.tags.lock().unwrap_or_else(PoisonError::into_inner).get(&block).copied().unwrap_or_default()
    }
}

impl WaitObserver for StreamLanes {
    fn waits(&self, waiter: Stamp, needed: Stamp, covers: u64) {
        let found = noted_uses::find(needed);
        let block = found.map(|(block, _)| AwaitedBlock { block: short(block), tag: self.tag(block) });
        let wait = StreamWaitRecord {
            waiter: self.stamp(waiter),
            writer: self.stamp(needed),
            covers,
            reason: found.map_or(WaitReason::Unknown, |(_, reason)| reason),
            block,
            time_ns: self.now(),
        };
        self.push(waiter.stream, TraceEvent::StreamWait(wait));
    }
}

/// The number of a block as messages show it.
pub(super) fn short(block: u64) -> u64 {
    block & ((1 << crate::ids::BlockId::NUMBER_BITS) - 1)
}
