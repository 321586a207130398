//! Addresses with chunks of memory behind them: pinned host memory, and devices without pages.
//!
//! A chunk is one allocation of the driver. Pieces never reach from one into the next, and
//! nothing can be remapped. The heap counts through all chunks as if they lay far apart (see [`ranges`](super::ranges)).
//! In each chunk, counting begins so that a unit and its address are equal modulo 2 MiB: what is aligned in units is aligned in memory.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kiln_driver::{DeviceAddress, Driver, HostBlock, MemoryId, MemoryRequest, Object, Place};

use super::arena::Placement;
use super::backing::{Extent, GrowError, Growth};
use super::chunk_ranges::{ChunkRanges, STRIDE_BITS};
use super::size_class::UNIT_BYTES;
use crate::budget::Budget;

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
pub(crate) struct ChunkBacking {
    driver: Arc<dyn Driver>,
    kind: ChunkKind,
    budget: Option<Budget>,
    chunk_ranges: ChunkRanges,
    chunks: Mutex<Vec<Chunk>>,
    reserved_bytes: AtomicU64,
    peak_bytes: AtomicU64,
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

impl ChunkBacking {
    /// Blocks can be aligned to 2 MiB and less.
    pub(crate) const MAX_ALIGN_UNITS: u64 = (2 << 20) / UNIT_BYTES;

    pub(crate) fn new(driver: Arc<dyn Driver>, kind: ChunkKind, budget: Option<Budget>) -> Self {
        Self {
            driver,
            kind,
            budget,
            chunk_ranges: ChunkRanges::new(),
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
        // SAFETY: a unit is located by the heap that has just taken it out of an arena, for a block (`Heap::block`); a block of no
        // bytes has unit zero. Arenas are given the units of a chunk once it was entered (`Heap::grow`).
        let range = unsafe { self.chunk_ranges.find(start) }?;
        let offset = range.origin.wrapping_add((start & ((1 << STRIDE_BITS) - 1)) * UNIT_BYTES);
        Some((plus(range.place, offset), DeviceAddress(range.address.0 + offset)))
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
        self.chunks().iter().map(|chunk| (chunk.start, chunk.units)).collect()
    }

    /// Bytes that may still be taken, as far as is known: other users of the device may take them first.
    pub(crate) fn room_bytes(&self) -> kiln_driver::Result<u64> {
        let free = match self.kind {
            // The host does not say what it would pin.
            ChunkKind::PinnedHost => u64::MAX,
            ChunkKind::Direct => self.driver.memory_info()?.free_bytes,
        };
        Ok(self.budget.as_ref().map_or(free, |budget| free.min(budget.room_bytes())))
    }

    /// Frees a chunk that belongs to no arena any more; returns its bytes.
    ///
    /// # Safety
    /// No arena has the units of the chunk, and no block or cache does.
    pub(crate) unsafe fn release(&self, start: u64) -> kiln_driver::Result<u64> {
        let chunk = {
            let mut chunks = self.chunks();
            chunks.iter().position(|chunk| chunk.start == start).map(|at| chunks.swap_remove(at))
        };
        let Some(chunk) = chunk else { return Ok(0) };
        self.free(&chunk.memory)?;
        // SAFETY: the caller promises what this asks for.
        unsafe { self.chunk_ranges.leave(chunk.start, chunk.units) };
        let bytes = chunk.units * UNIT_BYTES;
        self.reserved_bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.refund(bytes);
        Ok(bytes)
    }

    fn grow_by(&self, units: u64) -> Result<Extent, GrowError> {
        let bytes = units * UNIT_BYTES;
        if let Some(budget) = &self.budget {
            budget.charge(bytes).map_err(GrowError::Budget)?;
        }
        let allocated = self.allocate(bytes).inspect_err(|_| self.refund(bytes));
        let (memory, place, address) = allocated.map_err(GrowError::Driver)?;
        let bias = address.0 / UNIT_BYTES % Self::MAX_ALIGN_UNITS;
        let Some(start) = self.chunk_ranges.enter(place, address, bias, units) else {
            // It was never used; if it cannot be freed, the device is lost.
            let _ = self.free(&memory);
            self.refund(bytes);
            return Err(GrowError::Window { bytes });
        };
        let reserved = self.reserved_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.peak_bytes.fetch_max(reserved, Ordering::Relaxed);
        self.chunks().push(Chunk { start, units, memory });
        Ok(Extent { start, units, edge: Placement::Elsewhere })
    }

    fn chunks(&self) -> MutexGuard<'_, Vec<Chunk>> {
        self.chunks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refund(&self, bytes: u64) {
        if let Some(budget) = &self.budget {
            budget.refund(bytes);
        }
    }

    fn free(&self, memory: &ChunkMemory) -> kiln_driver::Result<()> {
        match memory {
            ChunkMemory::Host(block) => self.driver.destroy(Object::Host(block.id())),
            ChunkMemory::Device(memory) => self.driver.free(*memory, None),
        }
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
