//! Which blocks are live, and where in the program they were allocated.

use std::backtrace::Backtrace;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{free_below, unwrap};
use crate::block::{DeviceBlock, DeviceBlockId, ResourceKey};
use crate::error::{FreeError, Result};
use crate::last_use::{Stamps, StreamKey};
use crate::layer_view::LayerView;
use crate::reclaim::{ReclaimStep, Reclaimed};
use crate::request::AllocationRequest;
use crate::resource::MemoryResource;
use crate::resource_totals::Accounting;
use crate::tag::AllocTag;
use crate::try_reserve::{HostOutOfMemory, TryGrow};

/// Parts of the table, so that threads rarely meet.
const PARTS: usize = 16;

/// Tracks every live block; [`tracker`](Self::tracker) lists them.
pub struct LeakTracked<R> {
    key: ResourceKey,
    tracker: LeakTracker,
    inner: R,
}

/// A table of live blocks with their tags and, for some, where in the program they were allocated.
#[derive(Debug)]
pub struct LeakTracker {
    /// The call site of every so many allocations is taken; 0 is none.
    sample_every: u64,
    serial: AtomicU64,
    parts: [Mutex<HashMap<DeviceBlockId, LiveBlock>>; PARTS],
}

/// A block that was allocated and not freed.
#[derive(Clone, Debug)]
pub struct LiveBlock {
    /// Its name.
    pub block: DeviceBlockId,
    /// How many bytes it has.
    pub bytes: u64,
    /// What it is for.
    pub tag: AllocTag,
    /// The stream it was asked for.
    pub stream: StreamKey,
    /// The number of its allocation, counted from 1.
    pub serial: u64,
    /// Where it was allocated, if that was taken.
    pub site: Option<Arc<Backtrace>>,
}

impl<R: MemoryResource> LeakTracked<R> {
    /// Puts a table around a resource.
    pub fn new(inner: R) -> Self {
        Self::sampling(0, inner)
    }

    /// The same, taking the call site of every so many allocations. Taking one costs microseconds.
    pub fn sampling(every: u64, inner: R) -> Self {
        let parts = std::array::from_fn(|_| Mutex::default());
        let tracker = LeakTracker { sample_every: every, serial: AtomicU64::new(0), parts };
        Self { key: ResourceKey::fresh(), tracker, inner }
    }

    /// The table of live blocks.
    pub fn tracker(&self) -> &LeakTracker {
        &self.tracker
    }

    /// The resource below.
    pub fn inner(&self) -> &R {
        &self.inner
    }
}

impl LeakTracker {
    /// The blocks that are live, oldest first.
    pub fn live(&self) -> Vec<LiveBlock> {
        let parts = self.parts.iter().map(|part| part.lock().unwrap_or_else(PoisonError::into_inner));
        let mut live: Vec<LiveBlock> =
            parts.flat_map(|part| part.values().cloned().collect::<Vec<_>>()).collect();
        live.sort_by_key(|live| live.serial);
        live
    }

    /// Live blocks and bytes by tag, the largest first.
    pub fn by_tag(&self) -> Vec<(AllocTag, u64, u64)> {
        let mut tags: HashMap<AllocTag, (u64, u64)> = HashMap::new();
        for live in self.live() {
            let (blocks, bytes) = tags.entry(live.tag).or_default();
            (*blocks, *bytes) = (*blocks + 1, *bytes + live.bytes);
        }
        let mut tags: Vec<_> = tags.into_iter().map(|(tag, (blocks, bytes))| (tag, blocks, bytes)).collect();
        tags.sort_by_key(|(tag, _, bytes)| (std::cmp::Reverse(*bytes), *tag));
        tags
    }

    /// The call site of an allocation, if it is taken.
    fn site(&self, serial: u64) -> Option<Arc<Backtrace>> {
        let sampled = self.sample_every > 0 && serial.is_multiple_of(self.sample_every);
        sampled.then(|| Arc::new(Backtrace::force_capture()))
    }

    fn enter(&self, live: LiveBlock) -> std::result::Result<(), HostOutOfMemory> {
        let mut part = self.part(live.block);
        part.try_grow(1)?;
        part.insert(live.block, live);
        Ok(())
    }

    fn part(&self, block: DeviceBlockId) -> MutexGuard<'_, HashMap<DeviceBlockId, LiveBlock>> {
        let part = (block.0.0 / AllocationRequest::MIN_ALIGN) as usize % PARTS;
        self.parts[part].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[deny(clippy::missing_trait_methods)]
impl<R: MemoryResource> MemoryResource for LeakTracked<R> {
    fn key(&self) -> ResourceKey {
        self.key
    }

    fn allocate(&self, request: &AllocationRequest) -> Result<DeviceBlock> {
        let block = self.inner.allocate(request)?.rebound(self.key);
        if block.is_empty() {
            return Ok(block);
        }
        let serial = self.tracker.serial.fetch_add(1, Ordering::Relaxed) + 1;
        let live = LiveBlock {
            block: block.id(),
            bytes: block.bytes(),
            tag: block.tag(),
            stream: block.stream(),
            serial,
            site: self.tracker.site(serial),
        };
        match self.tracker.enter(live) {
            Ok(()) => Ok(block),
            Err(error) => {
                let block = block.rebound(self.inner.key());
                // The block was never used; if it cannot be freed either, the device is lost.
                let _ = self.inner.deallocate(block, &Stamps::NONE);
                Err(error.into())
            }
        }
    }

    fn deallocate(&self, block: DeviceBlock, uses: &Stamps) -> std::result::Result<(), FreeError> {
        let id = block.id();
        let block = unwrap(block, self.key, &self.inner)?;
        // Taken out first: once the block is free, its address may be another block's.
        let live = if block.is_empty() { None } else { self.tracker.part(id).remove(&id) };
        free_below(block, uses, self.key, &self.inner).inspect_err(|_| {
            if let Some(live) = live {
                // There is room: its entry has just gone, or another block's that came meanwhile has made more.
                let _ = self.tracker.enter(live);
            }
        })
    }

    fn accounting(&self) -> Accounting {
        self.inner.accounting()
    }

    fn reclaim(&self, step: ReclaimStep) -> Result<Reclaimed> {
        self.inner.reclaim(step)
    }

    fn layer(&self) -> LayerView<'_> {
        LayerView::around(&self.inner).showing(&self.tracker)
    }
}

impl<R: MemoryResource> fmt::Display for LeakTracked<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tracker.sample_every {
            0 => write!(f, "leaks({})", self.inner),
            every => write!(f, "leaks({every}, {})", self.inner),
        }
    }
}

impl fmt::Display for LiveBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { block, bytes, tag, stream, serial, site } = self;
        write!(f, "{block}: {bytes} bytes for {tag} on {stream}, allocation {serial}")?;
        site.as_ref().map_or(Ok(()), |site| write!(f, "\n{site}"))
    }
}
