//! The heap: nanoseconds for what was freed a moment ago, a few dozen for everything else, a driver call only to grow.
//!
//! ```text
//!   allocate ──► front: stocks of this thread, by stream and size class      no lock, no shared line
//!        │ miss
//!        ▼
//!   arena of the stream: two-level lists of free pieces                      the stream's own lock
//!        │ nothing fits
//!        ▼
//!   other arenas, where order allows ─► folds of free frames ─► new frames   driver calls, under no lock
//!        │ nothing left
//!        ▼
//!   the ladder: caches, completed, ordered, idle pages, callbacks, waiting   then an error that explains
//! ```
//!
//! A block freed on a stream can be reused on that stream at once: whatever uses it next runs later. Another stream
//! gets it when it is ordered after the last use or the last use is known to be done; only when there is nothing else
//! is the stream made to wait for it.

mod activity;
mod allocate;
mod arena;
mod arena_cell;
mod atlas;
mod bins;
mod choose;
mod chunk_ground;
mod config;
mod export;
mod fold;
mod folds;
mod front;
mod gaps;
mod ground;
mod habits;
mod lend;
mod mapping_limit;
mod page_ground;
mod patience;
mod pieces;
mod relief;
mod size_class;
mod spare;
mod streams;
mod stretches;
mod trim;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, RwLock};

use kiln_driver::{DeviceAddress, Driver};
use kiln_sync::{Bias, BiasedGuard, BiasedLock, ChunkedTable, PerThread};

use crate::accounting::Accounting;
use crate::block::{BlockParts, DeviceBlock, ResourceKey, Token};
use crate::byte_size::ByteSize;
use crate::error::{FreeError, Result};
use crate::ladder::{Pressure, Relief, Rung};
use crate::ledger::{self, Counts, Ledger, Page};
use crate::order::Order;
use crate::request::Request;
use crate::resource::MemoryResource;
use crate::stamp::{Stamps, StreamKey};
use crate::tag::AllocTag;
use activity::Happened;
use arena::Taken;
use arena_cell::{ArenaCell, Tried};
use front::Front;
use ground::Ground;
use patience::Patience;
use size_class::{CLASSED_UNITS, UNIT_BYTES, class_of, class_units, large_units};

pub use activity::HeapActivity;
pub use config::HeapConfig;
pub use spare::{BadSpare, Spare};

pub(crate) use atlas::PageRun;
pub(crate) use ground::GrowError;
pub use page_ground::PAGE_BYTES;
pub(crate) use page_ground::{not_exportable, reserve_window};

/// A heap over pages, or over chunks where there are no pages or the memory is the host's.
///
/// ```
/// use std::sync::Arc;
///
/// use kiln_driver::{Driver, StreamRequest};
/// use kiln_mem::{DriverOrder, Heap, HeapConfig, MemoryResource, MemoryResourceExt, Request};
///
/// let driver: Arc<dyn Driver> = kiln_sim::SimDevice::single(1);
/// let order = Arc::new(DriverOrder::new(driver.clone()));
/// let stream = order.add(driver.create_stream(StreamRequest::New { priority: 0 })?);
/// let heap = Heap::over_pages(driver, order, HeapConfig::default())?;
/// let block = heap.allocate(&Request::new(100_000, stream))?;
/// assert_eq!(heap.accounting().live_bytes, 100_000);
/// heap.free(block)?;
/// assert_eq!(heap.bytes_outstanding(), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Heap {
    key: ResourceKey,
    ground: Ground,
    order: Arc<dyn Order>,
    pressure: Pressure,
    spare: Spare,
    patience: Patience,
    /// What the configuration said.
    mapping_host_bytes: Option<u64>,
    arenas: ChunkedTable<ArenaCell>,
    next_arena: AtomicU32,
    /// The arena of each stream.
    streams: RwLock<HashMap<StreamKey, u32>>,
    /// Arenas whose streams are gone.
    orphans: Mutex<Vec<u32>>,
    shards: PerThread<Shard>,
    ledger: Ledger,
    false_dependencies: AtomicU64,
    happened: Happened,
}

/// Requests of up to so many bytes are common; 256 GiB.
const COMMON_BYTES: u64 = 1 << 38;

/// A thread's part of a heap.
#[derive(Debug)]
struct Shard {
    front: BiasedLock<Front>,
    page: Page,
}

/// What a block's token says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Ticket {
    taken: Taken,
    units: u32,
    arena: u32,
}

impl Heap {
    /// A heap of device memory over pages.
    ///
    /// # Errors
    /// Unsupported where the device has no pages; whatever the driver says to reserving addresses.
    pub fn over_pages(driver: Arc<dyn Driver>, order: Arc<dyn Order>, config: HeapConfig) -> Result<Self> {
        let ground = page_ground::PageGround::new(driver, &config)?;
        Ok(Self::over(Ground::Pages(ground), order, config))
    }

    /// A heap of device memory over chunks, for devices without pages.
    pub fn over_chunks(driver: Arc<dyn Driver>, order: Arc<dyn Order>, config: HeapConfig) -> Self {
        let kind = chunk_ground::ChunkKind::Direct;
        Self::over_chunks_of(kind, driver, order, config)
    }

    /// A heap of pinned host memory.
    pub fn over_host(driver: Arc<dyn Driver>, order: Arc<dyn Order>, config: HeapConfig) -> Self {
        let kind = chunk_ground::ChunkKind::PinnedHost;
        Self::over_chunks_of(kind, driver, order, config)
    }

    fn over_chunks_of(
        kind: chunk_ground::ChunkKind,
        driver: Arc<dyn Driver>,
        order: Arc<dyn Order>,
        config: HeapConfig,
    ) -> Self {
        let ground = chunk_ground::ChunkGround::new(driver, kind, config.budget);
        // Chunks are not mapped, so there is nothing to choose.
        let plain = HeapConfig { pressure: config.pressure, ..HeapConfig::default() };
        Self::over(Ground::Chunks(ground), order, plain)
    }

    fn over(ground: Ground, order: Arc<dyn Order>, config: HeapConfig) -> Self {
        let enough_frames = ground.pages().map_or(u64::MAX, |pages| pages.mapping_limit().enough_frames());
        Self {
            key: ResourceKey::fresh(),
            ground,
            order,
            pressure: config.pressure,
            spare: config.spare,
            patience: Patience::new(enough_frames),
            mapping_host_bytes: config.mapping_host_bytes,
            arenas: ChunkedTable::new(),
            next_arena: AtomicU32::new(0),
            streams: RwLock::default(),
            orphans: Mutex::default(),
            shards: PerThread::new(),
            ledger: Ledger::default(),
            false_dependencies: AtomicU64::new(0),
            happened: Happened::default(),
        }
    }

    /// What was allocated and freed for a tag.
    pub fn counts(&self, tag: AllocTag) -> Counts {
        ledger::count(self.pages(), tag)
    }

    /// What was allocated and freed for each tag.
    pub fn counts_by_tag(&self) -> Vec<(AllocTag, Counts)> {
        ledger::by_tag(self.pages())
    }

    /// What it did beside looking into its lists.
    pub fn activity(&self) -> HeapActivity {
        self.happened.with(self.arenas.iter().map(|cell| cell.visit().happened))
    }

    /// What the rows of frames that are mapped at present cost the host, about, in bytes: driver memory that shows in no account of
    /// the program. [`HeapConfig::mapping_host_bytes`] limits it.
    pub fn mapping_host_bytes(&self) -> u64 {
        let frames = self.ground.pages().map_or(0, |ground| ground.atlas().folds().mapped_frames());
        mapping_limit::host_bytes_of(frames)
    }

    fn pages(&self) -> impl Iterator<Item = &Page> + Clone {
        self.shards.iter().map(|shard| &shard.page)
    }

    #[inline(always)]
    fn shard(&self) -> &Shard {
        self.shards.own(|_| Shard::new())
    }

    /// Units from the stock of this thread or from the arena of the stream, where that takes no more than looking into their
    /// lists; otherwise, how far it got.
    #[inline(always)]
    fn take_common(
        &self,
        shard: &Shard,
        stream: StreamKey,
        units: u32,
    ) -> std::result::Result<Ticket, Tried> {
        let Some(mut front) = shard.enter() else { return Err(Tried::Nothing) };
        let looked = front.stock(stream.number()).map(|stock| {
            let (taken, units) = if units <= CLASSED_UNITS {
                let class = class_of(units);
                (stock.pop(class), class_units(class))
            } else {
                (None, large_units(units))
            };
            (taken, units, stock.arena)
        });
        drop(front);
        let (taken, units, arena) = looked.ok_or(Tried::Nothing)?;
        let taken = match taken {
            Some(taken) => taken,
            None => self.take_listed(arena, units)?,
        };
        Ok(Ticket { taken, units, arena })
    }

    /// Units from an arena of a stream that this thread has a stock for.
    fn take_listed(&self, arena: u32, units: u32) -> std::result::Result<Taken, Tried> {
        let Some(cell) = self.arenas.get(arena) else { return Err(Tried::Nothing) };
        cell.lock().take_common(units)
    }

    /// Writes a block out.
    #[inline(always)]
    fn block(&self, shard: &Shard, request: &Request, ticket: Ticket) -> DeviceBlock {
        self.ledger.note_allocated(&shard.page, request.tag, request.bytes);
        let (place, address) = match self.ground.locate(ticket.taken.start) {
            // A block of no bytes has an address, and no memory that could be named.
            Some((place, address)) => ((ticket.units > 0).then_some(place), address),
            None => (None, DeviceAddress(0)),
        };
        let (stream, token) = (request.stream.key, ticket.token());
        let Request { bytes, tag, .. } = *request;
        DeviceBlock::new(self.key, BlockParts { place, address, bytes, stream, tag, token })
    }

    /// Gives a block to the stock of this thread; `false` if there is none for it.
    #[inline(always)]
    fn free_stocked(&self, shard: &Shard, ticket: Ticket, stream: StreamKey) -> bool {
        let Some(mut front) = shard.enter() else { return false };
        let (kept, over) = match front.stock(stream.number()) {
            Some(stock) if stock.arena == ticket.arena => {
                (stock.push(class_of(ticket.units), ticket.units, ticket.taken), stock.is_over())
            }
            _ => (false, false),
        };
        drop(front);
        if over {
            self.shrink_stock(shard, stream);
        }
        kept
    }

    /// Gives a block to its arena; `false` if that is not all there is to do.
    fn free_listed(&self, ticket: Ticket, stream: StreamKey) -> bool {
        let Some(cell) = self.arenas.get(ticket.arena).filter(|cell| cell.stream() == stream) else {
            return false;
        };
        let now = self.order.latest(stream) as u32;
        cell.lock().give_common(ticket.taken, now)
    }
}

// What is inlined always, here and in what these two call, is so that a caller who knows the heap's type has the block in registers. As soon as one of
// them is a call, the block passes through memory, and moving it there costs as much as finding it.
#[deny(clippy::missing_trait_methods)]
impl MemoryResource for Heap {
    fn key(&self) -> ResourceKey {
        self.key
    }

    #[inline(always)]
    fn allocate(&self, request: &Request) -> Result<DeviceBlock> {
        let shard = self.shard();
        // Zero bytes wrap around to a huge number and go the long way, like everything unusual.
        let last = request.bytes.wrapping_sub(1);
        let is_aligned = request.align <= Request::MIN_ALIGN && request.align.is_power_of_two();
        let common = if is_aligned && last < COMMON_BYTES {
            self.take_common(shard, request.stream.key, (last / UNIT_BYTES) as u32 + 1)
        } else {
            Err(Tried::Nothing)
        };
        let ticket = match common {
            Ok(ticket) => ticket,
            Err(tried) => self.take_uncommon(shard, request, tried)?,
        };
        // All ways meet before the block is written out, in one place and to where the caller wants it. A copy of it would have
        // to wait until every store before it has reached the cache.
        Ok(self.block(shard, request, ticket))
    }

    #[inline(always)]
    fn deallocate(&self, block: DeviceBlock, uses: &Stamps) -> std::result::Result<(), FreeError> {
        if block.owner() != self.key {
            return Err(FreeError::foreign(block, self.key));
        }
        let shard = self.shard();
        let ticket = Ticket::of(block.token);
        // Blocks of no bytes have no units and go the long way.
        let freed = uses.is_empty()
            && if ticket.units.wrapping_sub(1) < CLASSED_UNITS {
                self.free_stocked(shard, ticket, block.stream)
            } else {
                ticket.units > 0 && self.free_listed(ticket, block.stream)
            };
        if freed {
            self.ledger.note_freed(&shard.page, block.tag, block.bytes);
            return Ok(());
        }
        self.free_to_arena(shard, block, uses)
    }

    fn accounting(&self) -> Accounting {
        self.count()
    }

    fn reap(&self, rung: Rung) -> Result<Relief> {
        self.relieve(rung, 0)
    }
}

impl Shard {
    fn new() -> Self {
        Self { front: BiasedLock::with_bias(Front::new(), Bias::Always), page: Page::new() }
    }

    /// This thread's stocks; none if another thread is at them.
    #[inline(always)]
    fn enter(&self) -> Option<BiasedGuard<'_, Front>> {
        self.front.try_lock()
    }

    /// Runs a closure on this thread's stocks.
    fn with_front<R>(&self, run: impl FnOnce(&mut Front) -> R) -> R {
        run(&mut self.front.lock())
    }
}

impl Ticket {
    /// What a block of no bytes has.
    const NOTHING: Self = Self { taken: Taken { piece: 0, start: 0 }, units: 0, arena: 0 };
    const ARENA_BITS: u32 = 24;

    #[inline]
    fn token(self) -> Token {
        Token {
            first: u64::from(self.taken.piece) << 32 | u64::from(self.units),
            second: self.taken.start << Self::ARENA_BITS | u64::from(self.arena),
        }
    }

    #[inline]
    fn of(token: Token) -> Self {
        Self {
            taken: Taken { piece: (token.first >> 32) as u32, start: token.second >> Self::ARENA_BITS },
            units: token.first as u32,
            arena: token.second as u32 & ((1 << Self::ARENA_BITS) - 1),
        }
    }
}

impl fmt::Display for Heap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.ground.name())?;
        let spare = Some(self.spare).filter(|spare| *spare != Spare::default());
        crate::stack::write_options(f, spare, self.mapping_host_bytes.map(ByteSize))
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
