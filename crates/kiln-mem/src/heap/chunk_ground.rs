//! Addresses with chunks of memory behind them: pinned host memory, and devices without pages.
//!
//! A chunk is one allocation of the driver with addresses of its own. Pieces never reach from one into the next, and
//! nothing can be folded. The heap counts through all chunks as if they lay 16 GiB apart; a number once given to a
//! chunk is not given to another, so an address can be looked up without a lock. Counting begins, in each chunk, where
//! it keeps step with the addresses up to 2 MiB, so that what is aligned in units is aligned in memory.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use kiln_driver::{DeviceAddress, Driver, HostBlock, MemoryId, MemoryRequest, Object, Place};

use super::arena::Edge;
use super::ground::{Extent, GrowError, Growth};
use super::size_class::UNIT_BYTES;
use crate::budget::Budget;
use crate::thread::Chunked;

/// Units from one number to the next.
const STRIDE_BITS: u32 = 26;
/// Numbers that can be given out.
const NUMBERS: u64 = 1 << 14;
/// The smallest chunk.
const LEAST_UNITS: u64 = (4 << 20) / UNIT_BYTES;
/// The largest chunk that is not made for one large request.
const MOST_UNITS: u64 = (64 << 20) / UNIT_BYTES;

/// What chunks are made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ChunkKind {
    /// Host memory that copies at full speed.
    PinnedHost,
    /// Device memory from the driver's plain allocator.
    Direct,
}

/// Chunks of memory.
pub(crate) struct ChunkGround {
    driver: Arc<dyn Driver>,
    kind: ChunkKind,
    budget: Option<Budget>,
    numbers: Chunked<Stretch>,
    chunks: Mutex<Chunks>,
    reserved_bytes: AtomicU64,
    peak_bytes: AtomicU64,
}

/// Where the units of one number lie.
#[derive(Debug)]
struct Stretch {
    place: Place,
    address: DeviceAddress,
    /// What is added to an offset from the number's start to count from the chunk's, modulo 2^64.
    origin: u64,
}

#[derive(Default)]
struct Chunks {
    next_number: u64,
    live: Vec<Chunk>,
}

/// One allocation.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub(crate) start: u64,
    pub(crate) units: u64,
    memory: ChunkMemory,
}

#[derive(Debug)]
enum ChunkMemory {
    Host(HostBlock),
    Device(MemoryId),
}

impl ChunkGround {
    /// Blocks can be aligned to 2 MiB and less.
    pub(crate) const MAX_ALIGN_UNITS: u64 = (2 << 20) / UNIT_BYTES;

    pub(crate) fn new(driver: Arc<dyn Driver>, kind: ChunkKind, budget: Option<Budget>) -> Self {
        Self {
            driver,
            kind,
            budget,
            numbers: Chunked::new(),
            chunks: Mutex::default(),
            reserved_bytes: AtomicU64::new(0),
            peak_bytes: AtomicU64::new(0),
        }
    }

    pub(crate) fn driver(&self) -> &dyn Driver {
        &*self.driver
    }

    #[inline]
    pub(crate) fn locate(&self, start: u64) -> Option<(Place, DeviceAddress)> {
        let stretch = self.numbers.get((start >> STRIDE_BITS) as u32)?;
        let offset = stretch.origin.wrapping_add((start & ((1 << STRIDE_BITS) - 1)) * UNIT_BYTES);
        Some((plus(stretch.place, offset), DeviceAddress(stretch.address.0 + offset)))
    }

    pub(crate) fn reserved_bytes(&self) -> u64 {
        self.reserved_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn peak_bytes(&self) -> u64 {
        self.peak_bytes.load(Ordering::Relaxed)
    }

    /// Allocates a chunk of at least so many units.
    pub(crate) fn grow(&self, growth: Growth) -> Result<Extent, GrowError> {
        let usual = (growth.owned_units / 4).clamp(LEAST_UNITS, MOST_UNITS);
        // A whole number of such requests, so that none is wasted.
        let wanted = growth.request_units * (usual / growth.request_units).max(1);
        match self.grow_by(wanted) {
            Err(refused) if refused.is_shortage() && wanted > growth.request_units => {
                self.grow_by(growth.request_units)
            }
            grown => grown,
        }
    }

    /// What a heap over it is called.
    pub(crate) fn name(&self) -> &'static str {
        match self.kind {
            ChunkKind::PinnedHost => "host",
            ChunkKind::Direct => "chunks",
        }
    }

    /// Where the chunks lie.
    pub(crate) fn extents(&self) -> Vec<(u64, u64)> {
        let chunks = self.chunks.lock().unwrap_or_else(PoisonError::into_inner);
        chunks.live.iter().map(|chunk| (chunk.start, chunk.units)).collect()
    }

    /// Gives a chunk back that belongs to no arena any more.
    pub(crate) fn release(&self, start: u64) -> kiln_driver::Result<u64> {
        let chunk = {
            let mut chunks = self.chunks.lock().unwrap_or_else(PoisonError::into_inner);
            chunks.live.iter().position(|chunk| chunk.start == start).map(|at| chunks.live.swap_remove(at))
        };
        let Some(chunk) = chunk else { return Ok(0) };
        match &chunk.memory {
            ChunkMemory::Host(block) => self.driver.destroy(Object::Host(block.id()))?,
            ChunkMemory::Device(memory) => self.driver.free(*memory, None)?,
        }
        let bytes = chunk.units * UNIT_BYTES;
        self.reserved_bytes.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(budget) = &self.budget {
            budget.refund(bytes);
        }
        Ok(bytes)
    }

    fn grow_by(&self, units: u64) -> Result<Extent, GrowError> {
        let bytes = units * UNIT_BYTES;
        let number = self.take_numbers(units + Self::MAX_ALIGN_UNITS).ok_or(GrowError::Window { bytes })?;
        if let Some(budget) = &self.budget {
            budget.charge(bytes).map_err(GrowError::Budget)?;
        }
        let (memory, place, address) = self.allocate(bytes).map_err(|error| {
            if let Some(budget) = &self.budget {
                budget.refund(bytes);
            }
            GrowError::Driver(error)
        })?;
        let bias = address.0 / UNIT_BYTES % Self::MAX_ALIGN_UNITS;
        for at in 0..(bias + units).div_ceil(1 << STRIDE_BITS) {
            let origin = ((at << STRIDE_BITS) * UNIT_BYTES).wrapping_sub(bias * UNIT_BYTES);
            self.numbers.get_or_make((number + at) as u32, || Stretch { place, address, origin });
        }
        let start = (number << STRIDE_BITS) + bias;
        let reserved = self.reserved_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.peak_bytes.fetch_max(reserved, Ordering::Relaxed);
        let mut chunks = self.chunks.lock().unwrap_or_else(PoisonError::into_inner);
        chunks.live.push(Chunk { start, units, memory });
        Ok(Extent { start, units, edge: Edge::Apart })
    }

    fn take_numbers(&self, units: u64) -> Option<u64> {
        let count = units.div_ceil(1 << STRIDE_BITS);
        let mut chunks = self.chunks.lock().unwrap_or_else(PoisonError::into_inner);
        let first = chunks.next_number;
        let next = first.checked_add(count).filter(|next| *next <= NUMBERS)?;
        chunks.next_number = next;
        Some(first)
    }

    fn allocate(&self, bytes: u64) -> kiln_driver::Result<(ChunkMemory, Place, DeviceAddress)> {
        match self.kind {
            ChunkKind::PinnedHost => {
                let block = self.driver.allocate_host(bytes)?;
                let address = DeviceAddress(block.bytes().as_ptr().addr() as u64);
                let place = Place::Host { block: block.id(), offset: 0 };
                Ok((ChunkMemory::Host(block), place, address))
            }
            ChunkKind::Direct => {
                let memory = self.driver.allocate(MemoryRequest::Direct { bytes })?;
                Ok((ChunkMemory::Device(memory.id), Place::Device(memory.id.into()), memory.address))
            }
        }
    }
}

fn plus(place: Place, bytes: u64) -> Place {
    match place {
        Place::Device(place) => Place::Device(place.plus(bytes)),
        Place::Peer(place) => Place::Peer(place.plus(bytes)),
        Place::Host { block, offset } => Place::Host { block, offset: offset + bytes },
    }
}
