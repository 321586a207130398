//! What can be read of a runtime without holding it.
//!
//! Who counts must not become the last holder of a runtime: its end would then come later, and on another thread, than its
//! owner dropped it. The parts that count are shared with the registry of runtimes instead, until the runtime has ended.

use std::any::Any;
use std::sync::Arc;

use kiln_driver::{DeviceInfo, Driver};
use kiln_mem::{Accounting, Heap, MemoryResource, MemoryResourceExt};
use kiln_order::{DependencyTracker, StreamCount, StreamCounts};

use super::extensions::Extensions;
use super::staging_pool::Staging;
use super::stream_pool::StreamPool;
use super::user_held_objects::LentObjects;
use crate::counters::{Count, Counters, Numbers};
use crate::device_state::StateCell;

/// The block that a new runtime allocates and frees to see whose memory its stack gives out.
pub(super) const TRIAL_BYTES: u64 = 1;

/// The parts of a runtime that count.
pub(crate) struct Meters {
    pub(super) driver: Arc<dyn Driver>,
    pub(super) tracker: Arc<DependencyTracker>,
    pub(super) counters: Arc<Counters>,
    pub(super) extensions: Arc<Extensions>,
    pub(super) lent: Arc<LentObjects>,
    pub(super) pool: Arc<StreamPool>,
    pub(super) staging: Arc<Staging>,
    pub(super) memory: Arc<dyn MemoryResource>,
    pub(super) state: Arc<StateCell>,
    /// The limit of the runtime itself.
    pub(super) limit_bytes: Option<u64>,
}

impl Meters {
    /// The device.
    pub(crate) fn device(&self) -> &DeviceInfo {
        self.driver.info()
    }

    /// What its memory stack counts. The block that was allocated to see whose memory it is does not count as a peak.
    pub(crate) fn accounting(&self) -> Accounting {
        let mut counted = self.memory.accounting();
        if counted.peak_live_bytes == TRIAL_BYTES
            && let Some(heap) = self.memory.find::<Heap>()
            && heap.counts_by_tag().iter().map(|(_, counts)| counts.allocations).sum::<u64>() <= 1
        {
            counted.peak_live_bytes = 0;
        }
        counted
    }

    pub(crate) fn tracker(&self) -> &DependencyTracker {
        &self.tracker
    }

    pub(crate) fn pool(&self) -> &StreamPool {
        &self.pool
    }

    pub(crate) fn staging(&self) -> &Staging {
        &self.staging
    }

    /// Modules that are loaded, with those that are unloaded after their last work.
    pub(crate) fn loaded_modules(&self) -> usize {
        self.lent.modules()
    }

    /// The value that a layer above keeps with the runtime, if it does.
    pub(crate) fn extension<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.extensions.get()
    }

    pub(crate) fn state(&self) -> &StateCell {
        &self.state
    }

    pub(crate) fn limit_bytes(&self) -> Option<u64> {
        self.limit_bytes
    }

    pub(crate) fn memory(&self) -> &dyn MemoryResource {
        &*self.memory
    }

    /// Everything counted since the runtime was made.
    pub(crate) fn counts(&self) -> Numbers {
        let mut counts = [0; Count::ALL.len()];
        self.counters.add_to(&mut counts);
        let mut streams = StreamCounts::default();
        self.tracker.add_counts(&mut streams);
        for count in StreamCount::ALL {
            counts[Count::from(*count) as usize] += streams[*count as usize];
        }
        self.extensions.add_counts(&mut counts);
        counts[Count::PinnedReused as usize] += self.staging.reused();
        counts[Count::PinnedMade as usize] += self.staging.made();
        counts
    }
}
