//! Counts allocations and frees.

use std::fmt;

use kiln_sync::PerThread;

use super::{free_below, unwrap};
use crate::allocation_counters::{self, AllocationCounters, AllocationCounts, ThreadCounters};
use crate::block::{DeviceBlock, ResourceKey};
use crate::error::{FreeError, Result};
use crate::last_use::Stamps;
use crate::layer_view::LayerView;
use crate::reclaim::{ReclaimStep, Reclaimed};
use crate::request::AllocationRequest;
use crate::resource::MemoryResource;
use crate::resource_totals::Accounting;
use crate::tag::AllocTag;

/// Tags named in an error that passes by.
const TOP_TAGS: usize = 5;

/// Counts allocations, frees and live bytes; [`statistics`](Self::statistics) reads them.
///
/// A heap counts in the same way. This layer is for other resources, and for what passes one layer of a stack.
pub struct Counted<R> {
    key: ResourceKey,
    statistics: Statistics,
    inner: R,
}

/// Allocations, frees and live bytes by tag, and the peak. Each thread counts for itself.
#[derive(Debug)]
pub struct Statistics {
    counters: AllocationCounters,
    threads: PerThread<ThreadCounters>,
}

/// What is done for a tag from a moment on; a task that uses a tag alone measures itself with it.
#[derive(Debug)]
pub struct StatisticsScope<'a> {
    statistics: &'a Statistics,
    tag: AllocTag,
    before: AllocationCounts,
}

impl<R: MemoryResource> Counted<R> {
    /// Puts counters around a resource.
    pub fn new(inner: R) -> Self {
        let statistics = Statistics { counters: AllocationCounters::default(), threads: PerThread::new() };
        Self { key: ResourceKey::fresh(), statistics, inner }
    }

    /// What was counted.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// The resource below.
    pub fn inner(&self) -> &R {
        &self.inner
    }
}

impl Statistics {
    /// What was done for all tags together.
    pub fn total(&self) -> AllocationCounts {
        allocation_counters::total(self.threads.iter())
    }

    /// What was done for a tag.
    pub fn counts(&self, tag: AllocTag) -> AllocationCounts {
        allocation_counters::count(self.threads.iter(), tag)
    }

    /// What was done for each tag.
    pub fn counts_by_tag(&self) -> Vec<(AllocTag, AllocationCounts)> {
        allocation_counters::by_tag(self.threads.iter())
    }

    /// The most bytes that were live at once. Exact for one thread; off by at most 1 MiB, or a 256th of what was live, for each further
    /// one.
    pub fn peak_bytes(&self) -> u64 {
        self.counters.peak_bytes(self.threads.iter())
    }

    /// Measures what is done for a tag from here on.
    pub fn scope(&self, tag: AllocTag) -> StatisticsScope<'_> {
        StatisticsScope { statistics: self, tag, before: self.counts(tag) }
    }

    fn own_counters(&self) -> &ThreadCounters {
        self.threads.own(|_| ThreadCounters::new())
    }
}

impl StatisticsScope<'_> {
    /// What was done for the tag since the scope was made.
    pub fn counts(&self) -> AllocationCounts {
        self.statistics.counts(self.tag).since(&self.before)
    }
}

#[deny(clippy::missing_trait_methods)]
impl<R: MemoryResource> MemoryResource for Counted<R> {
    fn key(&self) -> ResourceKey {
        self.key
    }

    #[inline]
    fn allocate(&self, request: &AllocationRequest) -> Result<DeviceBlock> {
        match self.inner.allocate(request) {
            Ok(block) => {
                let Statistics { counters, .. } = &self.statistics;
                counters.note_allocated(self.statistics.own_counters(), request.tag, request.bytes);
                Ok(block.rebound(self.key))
            }
            Err(mut error) => {
                if let Some(exhausted) = error.exhausted_mut()
                    && exhausted.top_tags.is_empty()
                {
                    exhausted.top_tags =
                        allocation_counters::top_tags(self.statistics.threads.iter(), TOP_TAGS);
                }
                Err(error)
            }
        }
    }

    #[inline]
    fn deallocate(&self, block: DeviceBlock, uses: &Stamps) -> std::result::Result<(), FreeError> {
        let (tag, bytes) = (block.tag(), block.bytes());
        free_below(unwrap(block, self.key, &self.inner)?, uses, self.key, &self.inner)?;
        self.statistics.counters.note_freed(self.statistics.own_counters(), tag, bytes);
        Ok(())
    }

    fn accounting(&self) -> Accounting {
        self.inner.accounting()
    }

    fn reclaim(&self, step: ReclaimStep) -> Result<Reclaimed> {
        self.inner.reclaim(step)
    }

    fn layer(&self) -> LayerView<'_> {
        LayerView::around(&self.inner).showing(&self.statistics)
    }
}

impl<R: MemoryResource> fmt::Display for Counted<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stats({})", self.inner)
    }
}
