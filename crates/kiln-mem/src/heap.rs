//! The heap: about 20 ns for a block that the thread freed a moment ago, 40 to 100 for others, a driver call only to grow or to remap.
//!
//! ```text
//!   allocate ──► cache of this thread, by stream and size class              no lock, no shared line
//!        │ miss
//!        ▼
//!   arena of the stream: two-level lists of free pieces                      the lock of the stream's arena
//!        │ nothing fits
//!        ▼
//!   other arenas, where order allows ─► remaps of free frames ─► new frames   driver calls, under no lock
//!        │ nothing left
//!        ▼
//!   reclaim: caches, completed, ordered, idle pages, callbacks, waiting      then an error that explains
//! ```
//!
//! A block freed on a stream can be used again on that stream at once: its next use runs later. Another stream
//! gets it when it is ordered after the last use or the last use is known to be done; only when there is nothing else
//! is the stream made to wait for it.

mod address_ranges;
mod arena;
mod backing;
mod block_token;
mod chunk_backing;
mod chunk_ranges;
mod config;
mod cross_stream_reuse;
mod fast_path;
mod free_lists;
mod free_runs;
mod heap_counters;
mod locked_arena;
mod mapping_limit;
mod memory_shortage;
mod page_backing;
mod page_export;
mod physical_page_selection;
mod physical_pages;
mod remap_budget;
mod remap_cache;
mod remap_table;
mod remapping;
mod size_class;
mod slow_path;
mod spare_memory;
mod stream_arenas;
mod thread_cache;
mod trim;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, RwLock};

use kiln_driver::Driver;
use kiln_sync::{Bias, BiasedLock, ChunkedTable, PerThread};

use crate::allocation_counters::{self, AllocationCounters, AllocationCounts, ThreadCounters};
use crate::block::{DeviceBlock, ResourceKey};
use crate::byte_size::ByteSize;
use crate::error::{FreeError, Result};
use crate::last_use::{Stamps, StreamKey};
use crate::layer_view::LayerView;
use crate::reclaim::{PressurePolicy, ReclaimStep, Reclaimed};
use crate::request::AllocationRequest;
use crate::resource::MemoryResource;
use crate::resource_totals::Accounting;
use crate::stream_order::Order;
use crate::tag::AllocTag;
use backing::Backing;
use block_token::BlockUnits;
use heap_counters::ActivityCounters;
use locked_arena::LockedArena;
use remap_budget::RemapBudget;
use thread_cache::ThreadCache;

pub use config::HeapConfig;
pub use heap_counters::HeapActivity;
pub use spare_memory::{Spare, SpareError};

pub(crate) use backing::GrowError;
pub use page_backing::PAGE_BYTES;
pub(crate) use page_backing::{not_exportable, reserve_window};
pub(crate) use physical_pages::PageRun;

/// A heap over pages, or over chunks where there are no pages or the memory is the host's.
///
/// ```
/// use std::sync::Arc;
///
/// use kiln_driver::{Driver, StreamRequest};
/// use kiln_mem::{DriverOrder, Heap, HeapConfig, MemoryResource, MemoryResourceExt, AllocationRequest};
///
/// let driver: Arc<dyn Driver> = kiln_sim::SimDevice::single(1);
/// let order = Arc::new(DriverOrder::new(driver.clone()));
/// let stream = order.add(driver.create_stream(StreamRequest::New { priority: 0 })?)?;
/// let heap = Heap::over_pages(driver, order, HeapConfig::default())?;
/// let block = heap.allocate(&AllocationRequest::new(100_000, stream))?;
/// assert_eq!(heap.accounting().live_bytes, 100_000);
/// heap.free(block)?;
/// assert_eq!(heap.bytes_outstanding(), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Heap {
    key: ResourceKey,
    backing: Backing,
    order: Arc<dyn Order>,
    pressure: PressurePolicy,
    spare: Spare,
    remap_budget: RemapBudget,
    /// What the configuration said.
    mapping_host_bytes: Option<u64>,
    arenas: ChunkedTable<LockedArena>,
    next_arena: AtomicU32,
    /// The arena of each stream.
    streams: RwLock<HashMap<StreamKey, u32>>,
    /// Arenas whose streams are gone.
    orphans: Mutex<Vec<u32>>,
    parts: PerThread<ThreadPart>,
    counters: AllocationCounters,
    false_dependencies: AtomicU64,
    activity: ActivityCounters,
}

/// A thread's part of a heap.
#[derive(Debug)]
struct ThreadPart {
    cache: BiasedLock<ThreadCache>,
    counters: ThreadCounters,
}

impl Heap {
    /// A heap of device memory over pages.
    ///
    /// # Errors
    /// Unsupported where the device has no pages; what the driver answers to reserving addresses.
    pub fn over_pages(driver: Arc<dyn Driver>, order: Arc<dyn Order>, config: HeapConfig) -> Result<Self> {
        let backing = page_backing::PageBacking::new(driver, &config)?;
        Ok(Self::over(Backing::Pages(backing), order, config))
    }

    /// A heap of device memory over chunks, for devices without pages.
    pub fn over_chunks(driver: Arc<dyn Driver>, order: Arc<dyn Order>, config: HeapConfig) -> Self {
        let kind = chunk_backing::ChunkKind::Direct;
        Self::over_chunks_of(kind, driver, order, config)
    }

    /// A heap of pinned host memory.
    pub fn over_host(driver: Arc<dyn Driver>, order: Arc<dyn Order>, config: HeapConfig) -> Self {
        let kind = chunk_backing::ChunkKind::PinnedHost;
        Self::over_chunks_of(kind, driver, order, config)
    }

    fn over_chunks_of(
        kind: chunk_backing::ChunkKind,
        driver: Arc<dyn Driver>,
        order: Arc<dyn Order>,
        config: HeapConfig,
    ) -> Self {
        let backing = chunk_backing::ChunkBacking::new(driver, kind, config.budget);
        // Chunks are not mapped, so there is nothing to choose.
        let plain = HeapConfig { pressure: config.pressure, ..HeapConfig::default() };
        Self::over(Backing::Chunks(backing), order, plain)
    }

    fn over(backing: Backing, order: Arc<dyn Order>, config: HeapConfig) -> Self {
        let budget_frames = backing.pages().map_or(u64::MAX, |pages| pages.mapping_limit().budget_frames());
        Self {
            key: ResourceKey::fresh(),
            backing,
            order,
            pressure: config.pressure,
            spare: config.spare,
            remap_budget: RemapBudget::new(budget_frames),
            mapping_host_bytes: config.mapping_host_bytes,
            arenas: ChunkedTable::new(),
            next_arena: AtomicU32::new(0),
            streams: RwLock::default(),
            orphans: Mutex::default(),
            parts: PerThread::new(),
            counters: AllocationCounters::default(),
            false_dependencies: AtomicU64::new(0),
            activity: ActivityCounters::default(),
        }
    }

    /// What was allocated and freed for a tag.
    pub fn counts(&self, tag: AllocTag) -> AllocationCounts {
        allocation_counters::count(self.thread_counters(), tag)
    }

    /// What was allocated and freed for each tag.
    pub fn counts_by_tag(&self) -> Vec<(AllocTag, AllocationCounts)> {
        allocation_counters::by_tag(self.thread_counters())
    }

    /// Counts of what it did besides looking into its lists.
    pub fn activity(&self) -> HeapActivity {
        self.activity.with(self.arenas.iter().map(|cell| cell.visit().activity))
    }

    /// Bytes that it has taken from the device. It is one load, unlike [`accounting`](MemoryResource::accounting).
    pub fn held_bytes(&self) -> u64 {
        self.backing.reserved_bytes()
    }

    /// Bytes of free memory that it has mapped to other addresses since it was made, to make large ranges of them. It is one load.
    pub fn remapped_bytes(&self) -> u64 {
        self.activity.pages_mapped.read().saturating_mul(PAGE_BYTES)
    }

    /// What the mapped remaps cost the host at present, approximately, in bytes: memory of the driver that no tool shows as the program's.
    /// [`HeapConfig::mapping_host_bytes`] limits it.
    pub fn mapping_host_bytes(&self) -> u64 {
        let frames = self.backing.pages().map_or(0, |backing| backing.frame_table().remaps().mapped_frames());
        mapping_limit::host_bytes_of(frames)
    }

    fn thread_counters(&self) -> impl Iterator<Item = &ThreadCounters> + Clone {
        self.parts.iter().map(|part| &part.counters)
    }

    #[inline]
    fn part(&self) -> &ThreadPart {
        self.parts.own(|_| ThreadPart::new())
    }
}

// A block is one pointer, so both methods pass it in a register, through a trait object too.
#[deny(clippy::missing_trait_methods)]
impl MemoryResource for Heap {
    fn key(&self) -> ResourceKey {
        self.key
    }

    #[inline]
    fn allocate(&self, request: &AllocationRequest) -> Result<DeviceBlock> {
        self.allocate_fast(request)
    }

    #[inline]
    fn deallocate(&self, block: DeviceBlock, uses: &Stamps) -> std::result::Result<(), FreeError> {
        if block.owner() != self.key {
            return Err(FreeError::foreign(block, self.key));
        }
        self.free_fast(block, uses)
    }

    fn accounting(&self) -> Accounting {
        self.count()
    }

    fn reclaim(&self, step: ReclaimStep) -> Result<Reclaimed> {
        self.take_step(step, 0)
    }

    fn layer(&self) -> LayerView<'_> {
        LayerView::base().showing(self)
    }
}

impl ThreadPart {
    fn new() -> Self {
        Self {
            cache: BiasedLock::with_bias(ThreadCache::new(), Bias::Always),
            counters: ThreadCounters::new(),
        }
    }

    /// Runs a closure on this thread's cache.
    fn with_cache<R>(&self, run: impl FnOnce(&mut ThreadCache) -> R) -> R {
        run(&mut self.cache.lock())
    }
}

impl fmt::Display for Heap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.backing.name())?;
        let spare = Some(self.spare).filter(|spare| *spare != Spare::default());
        crate::resource_stack::write_options(f, spare, self.mapping_host_bytes.map(ByteSize))
    }
}

impl fmt::Debug for Heap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "heap {:?}", self.accounting())
    }
}

/// Numbers for tests: a linear congruential generator, so that a failure can be repeated from its seed.
#[cfg(test)]
pub(crate) fn lcg(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 42;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    }
}
