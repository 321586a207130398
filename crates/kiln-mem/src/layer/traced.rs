//! Records every allocation and free.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kiln_driver::{Clock, DeviceAddress, WallClock};
use kiln_sync::{Bias, BiasedLock, PerThread};

use super::{free_below, unwrap};
use crate::block::{DeviceBlock, ResourceKey};
use crate::error::{FreeError, Result};
use crate::last_use::{Stamps, StreamKey};
use crate::layer_view::LayerView;
use crate::reclaim::{ReclaimStep, Reclaimed};
use crate::request::AllocationRequest;
use crate::resource::MemoryResource;
use crate::resource_totals::Accounting;
use crate::tag::AllocTag;
use crate::trace::{Ring, TraceAction, TraceRecord};

/// How much is kept, and what time it is.
#[derive(Clone)]
pub struct TraceConfig {
    /// Records that each thread keeps, from 1 to [`RECORDS_LIMIT`](Self::RECORDS_LIMIT); older ones are dropped and counted.
    pub records_per_thread: usize,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

impl TraceConfig {
    /// The most records that a thread keeps. Room for all of them is made when a thread is first seen.
    pub const RECORDS_LIMIT: usize = 1 << 26;
}

impl Default for TraceConfig {
    fn default() -> Self {
        Self { records_per_thread: 1 << 16, clock: Arc::new(WallClock::new()) }
    }
}

/// Records every call; [`recorder`](Self::recorder) reads the records.
pub struct Traced<R> {
    key: ResourceKey,
    recorder: TraceRecorder,
    inner: R,
}

/// Records of fixed size, in a ring for each thread.
pub struct TraceRecorder {
    config: TraceConfig,
    /// The earliest time that the next record may have. Two records of one nanosecond, or of a clock that stands still, would have no
    /// order among threads, and a replay could free a block before it is handed out.
    next_nanoseconds: AtomicU64,
    rings: PerThread<ThreadRing>,
}

/// What a record says of a block.
#[derive(Clone, Copy)]
struct Event {
    address: DeviceAddress,
    bytes: u64,
    stream: StreamKey,
    tag: AllocTag,
}

impl Event {
    fn of(block: &DeviceBlock) -> Self {
        Self { address: block.address(), bytes: block.bytes(), stream: block.stream(), tag: block.tag() }
    }
}

struct ThreadRing {
    thread: u32,
    ring: BiasedLock<Ring>,
}

impl<R: MemoryResource> Traced<R> {
    /// Puts a trace around a resource. A number of records that no thread can keep becomes the nearest that one can.
    pub fn new(mut config: TraceConfig, inner: R) -> Self {
        config.records_per_thread = config.records_per_thread.clamp(1, TraceConfig::RECORDS_LIMIT);
        let recorder = TraceRecorder { config, next_nanoseconds: AtomicU64::new(0), rings: PerThread::new() };
        Self { key: ResourceKey::fresh(), recorder, inner }
    }

    /// What was recorded.
    pub fn recorder(&self) -> &TraceRecorder {
        &self.recorder
    }

    /// The resource below.
    pub fn inner(&self) -> &R {
        &self.inner
    }
}

impl TraceRecorder {
    /// The records that are left, of all threads, in the order in which they were written. No two have the same time.
    pub fn records(&self) -> Vec<TraceRecord> {
        let mut records: Vec<TraceRecord> = Vec::new();
        for ring in self.rings.iter() {
            records.extend(ring.ring.visit().records());
        }
        records.sort_by_key(|record| record.nanoseconds);
        records
    }

    /// Records that were dropped because rings were full.
    pub fn dropped(&self) -> u64 {
        self.rings.iter().map(|ring| ring.ring.visit().dropped()).sum()
    }

    /// The time, or as little more as it takes to come after every earlier record. What happens before a record is recorded before:
    /// nothing but this one word has to be agreed on for that, so it needs no stronger order.
    fn tick(&self) -> u64 {
        let now = u64::try_from(self.config.clock.now().as_nanos()).unwrap_or(u64::MAX);
        let after = |next: u64| Some(now.max(next).saturating_add(1));
        let next = self.next_nanoseconds.fetch_update(Ordering::Relaxed, Ordering::Relaxed, after);
        now.max(next.unwrap_or_else(|next| next))
    }

    fn write(&self, action: TraceAction, event: Event) {
        let own = self.rings.own(|thread| ThreadRing {
            thread,
            ring: BiasedLock::with_bias(Ring::new(self.config.records_per_thread), Bias::Always),
        });
        let record = TraceRecord {
            nanoseconds: self.tick(),
            address: event.address,
            bytes: event.bytes,
            stream: event.stream,
            thread: own.thread,
            tag: event.tag,
            action,
        };
        own.ring.lock().push(record);
    }
}

#[deny(clippy::missing_trait_methods)]
impl<R: MemoryResource> MemoryResource for Traced<R> {
    fn key(&self) -> ResourceKey {
        self.key
    }

    fn allocate(&self, request: &AllocationRequest) -> Result<DeviceBlock> {
        match self.inner.allocate(request) {
            Ok(block) => {
                self.recorder.write(TraceAction::Allocate, Event::of(&block));
                Ok(block.rebound(self.key))
            }
            Err(error) => {
                let AllocationRequest { bytes, stream, tag, .. } = *request;
                let failed = Event { address: DeviceAddress(0), bytes, stream: stream.key(), tag };
                self.recorder.write(TraceAction::Fail, failed);
                Err(error)
            }
        }
    }

    fn deallocate(&self, block: DeviceBlock, uses: &Stamps) -> std::result::Result<(), FreeError> {
        let block = unwrap(block, self.key, &self.inner)?;
        let event = Event::of(&block);
        // Written first: once the block is free, its address may be handed out and recorded again.
        self.recorder.write(TraceAction::Free, event);
        free_below(block, uses, self.key, &self.inner)
            // It is live after all.
            .inspect_err(|_| self.recorder.write(TraceAction::Allocate, event))
    }

    fn accounting(&self) -> Accounting {
        self.inner.accounting()
    }

    fn reclaim(&self, step: ReclaimStep) -> Result<Reclaimed> {
        self.inner.reclaim(step)
    }

    fn layer(&self) -> LayerView<'_> {
        LayerView::around(&self.inner).showing(&self.recorder)
    }
}

impl<R: MemoryResource> fmt::Display for Traced<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "trace({}, {})", self.recorder.config.records_per_thread, self.inner)
    }
}

impl fmt::Debug for TraceRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a trace of {} records for each thread", self.config.records_per_thread)
    }
}
