//! Requests that the cache and the lists could not serve at once, and frees that they did not take.

use kiln_sync::BiasedGuard;

use super::arena::{Arena, TakenPiece};
use super::backing::{GrowError, Growth};
use super::locked_arena::{ArenaState, LockedArena, Searched};
use super::physical_page_selection::PAGE_UNITS;
use super::size_class::{CLASSED_UNITS, UNIT_BYTES, rounded_units};
use super::thread_cache::Batch;
use super::{BlockUnits, Heap, ThreadPart};
use crate::block::{BlockRecord, DeviceBlock};
use crate::error::{ErrorKind, FreeError, MemoryRefusal, Result};
use crate::last_use::{Stamp, Stamps, StreamKey};
use crate::request::AllocationRequest;

/// Pending blocks that an ordinary request looks at.
const SETTLED_AT_ONCE: usize = 16;
/// Free memory that an arena may have, however little is in use, before frames are remapped rather than added.
const SPARE_LEAST_UNITS: u64 = (16 << 20) / UNIT_BYTES;
/// New pieces that taking units, or adding memory, makes at most.
const NEW_PIECES: usize = 4;
/// How often a thread grows an arena and finds that another thread took what it added, before it gives up.
const GROWN_AT_MOST: usize = 16;

/// A request in units.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct UnitRequest {
    pub(super) units: u32,
    /// In units; 1 for no alignment.
    pub(super) align: u64,
    /// Added to an address before it is aligned.
    pub(super) phase: u64,
    pub(super) bytes: u64,
}

impl UnitRequest {
    /// Units that hold the block wherever they start.
    pub(super) fn padded_units(self) -> u64 {
        u64::from(self.units) + self.align - 1
    }

    pub(super) fn is_plain(self) -> bool {
        self.align == 1
    }

    #[inline]
    pub(super) fn take_in(self, arena: &mut Arena) -> Option<TakenPiece> {
        if self.is_plain() {
            arena.take(self.units)
        } else {
            arena.take_aligned(self.units, self.align, self.phase)
        }
    }
}

impl Heap {
    /// A block for a request that is unusual, or that the lists hold nothing for.
    #[inline(never)]
    pub(super) fn allocate_uncommon(
        &self,
        part: &ThreadPart,
        request: &AllocationRequest,
        tried: Searched,
    ) -> Result<DeviceBlock> {
        if request.bytes == 0 {
            check_align(request.align)?;
            return self.block(part, request, BlockUnits::NOTHING, None);
        }
        let wanted = self.unit_request(request)?;
        let cell = self.arena_of(part, request.stream.key());
        cell.lock().arena.try_grow(NEW_PIECES)?;
        let block_units = self.acquire(part, cell, wanted, tried)?;
        let record = self.arenas.get(block_units.arena).and_then(|cell| cell.lock().records.pop());
        self.block(part, request, block_units, record)
    }

    /// Gives units back of which no block could be made.
    pub(super) fn return_units(&self, block_units: BlockUnits) {
        let Some(cell) = self.arenas.get(block_units.arena).filter(|_| block_units.units > 0) else { return };
        let now = self.order.latest(cell.stream()) as u32;
        cell.lock().arena.give(block_units.taken, now, now);
    }

    #[inline(never)]
    pub(super) fn free_to_arena(
        &self,
        part: &ThreadPart,
        block: DeviceBlock,
        uses: &Stamps,
    ) -> std::result::Result<(), FreeError> {
        let block_units = BlockUnits::of(block.token());
        let (tag, bytes) = (block.tag(), block.bytes());
        if block_units.units > 0 {
            let Some(cell) = self.arenas.get(block_units.arena) else { return Err(FreeError::stale(block)) };
            let uses = self.uses_that_matter(cell, block.stream(), uses);
            if !uses.is_empty()
                && let Err(error) = cell.lock().try_grow_pending()
            {
                return Err(FreeError::new(block, error));
            }
            if let Err(record) = self.give(part, cell, block_units, uses, block.into_record()) {
                return Err(FreeError::stale(DeviceBlock::of_record(record)));
            }
        }
        self.counters.note_freed(&part.counters, tag, bytes);
        Ok(())
    }

    /// Gives a part of a cache that is over its limit back to its arena.
    #[cold]
    pub(super) fn shrink_cache(&self, part: &ThreadPart, stream: StreamKey) {
        let shrunk = part.with_cache(|cache| {
            let cache = cache.stream(stream.index() as u32)?;
            Some((cache.arena, cache.shrink()))
        });
        if let Some((arena, batch)) = shrunk {
            self.give_batch(arena, batch);
        }
    }

    /// Gives blocks of a cache back to their arena.
    pub(super) fn give_batch(&self, arena: u32, batch: Batch) {
        let Some(cell) = self.arenas.get(arena) else { return };
        let now = self.order.latest(cell.stream()) as u32;
        cell.lock().give_batch(batch, now);
    }

    /// Takes units for a request: from its arena, from other arenas, by a remap, from the device, or by reclaiming memory.
    fn acquire(
        &self,
        part: &ThreadPart,
        cell: &LockedArena,
        wanted: UnitRequest,
        tried: Searched,
    ) -> Result<BlockUnits> {
        if tried == Searched::Nothing
            && let Some(block_units) = self.take_own(part, cell, wanted)
        {
            return Ok(block_units);
        }
        if self.empty_cache(part, cell) > 0
            && let Some(block_units) = self.take_own(part, cell, wanted)
        {
            return Ok(block_units);
        }
        if self.import_frames(cell, wanted)
            && let Some(block_units) = self.take_own(part, cell, wanted)
        {
            return Ok(block_units);
        }
        let remap_first = !self.may_grow(cell, wanted);
        if remap_first {
            if let Some(block_units) = self.remap(cell, wanted)? {
                return Ok(block_units);
            }
            if let Some(block_units) = self.remap_with_growth(cell, wanted)? {
                return Ok(block_units);
            }
        }
        let refused = match self.grow(part, cell, wanted) {
            Ok(block_units) => return Ok(block_units),
            Err(refused) => refused,
        };
        if !remap_first && let Some(block_units) = self.remap(cell, wanted)? {
            return Ok(block_units);
        }
        self.reclaim_for(part, cell, wanted, refused)
    }

    /// Takes units out of the stream's own arena.
    #[inline]
    pub(super) fn take_own(
        &self,
        part: &ThreadPart,
        cell: &LockedArena,
        wanted: UnitRequest,
    ) -> Option<BlockUnits> {
        let mut state = cell.lock();
        if !state.is_settled() {
            state.settle(cell.stream(), &*self.order, SETTLED_AT_ONCE);
        }
        if state.is_remapped {
            self.reset_layout_if_unused(part, cell, &mut state);
        }
        let taken = wanted.take_in(&mut state.arena)?;
        Some(BlockUnits { taken, units: wanted.units, arena: cell.number })
    }

    /// Adds memory to an arena and takes the units from it.
    pub(super) fn grow(
        &self,
        part: &ThreadPart,
        cell: &LockedArena,
        wanted: UnitRequest,
    ) -> std::result::Result<BlockUnits, GrowError> {
        let mut refused = None;
        for _ in 0..GROWN_AT_MOST {
            let growth = growth_of(&cell.lock().arena, cell.number, wanted);
            let mut state = match self.add(cell, growth) {
                Ok(state) => state,
                Err(error) => {
                    refused = Some(error);
                    break;
                }
            };
            let taken = wanted.take_in(&mut state.arena);
            let owned = state.arena.owned_units();
            drop(state);
            self.limit_cache(part, cell, owned);
            if let Some(taken) = taken {
                return Ok(BlockUnits { taken, units: wanted.units, arena: cell.number });
            }
        }
        Err(refused.unwrap_or(GrowError::Window { bytes: wanted.bytes }))
    }

    /// Adds memory to an arena; returns its state, still locked, so that no other thread takes what was added.
    pub(super) fn add<'c>(
        &self,
        cell: &'c LockedArena,
        growth: Growth,
    ) -> std::result::Result<BiasedGuard<'c, ArenaState>, GrowError> {
        cell.lock().arena.try_grow(NEW_PIECES)?;
        let mut left = self.backing.grow(growth)?;
        self.activity.growths.note();
        let now = self.order.latest(cell.stream()) as u32;
        let mut state = cell.lock();
        while left.units > 0 {
            let units = left.units.min(u64::from(u32::MAX) / PAGE_UNITS * PAGE_UNITS);
            state.arena.extend(left.start, units as u32, left.edge, 0, now);
            left.start += units;
            left.units -= units;
        }
        Ok(state)
    }

    /// Whether an arena has so little spare memory that it may grow without remapping first.
    fn may_grow(&self, cell: &LockedArena, wanted: UnitRequest) -> bool {
        let Some(backing) = self.backing.pages().filter(|_| wanted.padded_units() >= PAGE_UNITS) else {
            return true;
        };
        let state = cell.lock();
        let growth = growth_of(&state.arena, cell.number, wanted);
        let owned = state.arena.owned_units() + growth.missing_units;
        let used = state.arena.used_units() + u64::from(wanted.units);
        let room = backing.room_pages() * PAGE_UNITS;
        let spare = self.spare.of(used, room, self.remap_budget.is_spent());
        owned.saturating_sub(used) <= spare.max(SPARE_LEAST_UNITS)
    }

    /// Makes a taken piece free, at once or when `uses` are over. The record comes back if there is no such piece.
    fn give(
        &self,
        part: &ThreadPart,
        cell: &LockedArena,
        block_units: BlockUnits,
        uses: Stamps,
        record: Box<BlockRecord>,
    ) -> std::result::Result<(), Box<BlockRecord>> {
        let now = self.order.latest(cell.stream()) as u32;
        let mut state = cell.lock();
        let unused = uses.is_empty();
        let given = if unused {
            state.arena.give(block_units.taken, now, now)
        } else {
            state.defer_free(block_units.taken, block_units.units, uses)
        };
        if !given {
            return Err(record);
        }
        state.records.push(record);
        if !unused {
            return Ok(());
        }
        if state.is_remapped {
            self.reset_layout_if_unused(part, cell, &mut state);
        }
        let owned = state.arena.owned_units();
        drop(state);
        if block_units.units <= CLASSED_UNITS && self.is_known(cell) {
            // The next block of this size that this thread frees on the stream finds a cache.
            self.limit_cache(part, cell, owned);
        }
        Ok(())
    }

    /// The uses that the arena's stream is not ordered after. A block that another stream borrowed was used there.
    fn uses_that_matter(&self, cell: &LockedArena, stream: StreamKey, uses: &Stamps) -> Stamps {
        let owner = cell.stream();
        if uses.is_empty() && stream == owner {
            return Stamps::NONE;
        }
        let mut uses = uses.clone();
        uses.retain(|stamp| !self.order.is_ordered(owner, stamp));
        if stream != owner {
            let last = Stamp { stream, number: self.order.latest(stream) };
            if !self.order.is_ordered(owner, last) {
                uses.insert(last);
            }
        }
        uses
    }

    fn unit_request(&self, request: &AllocationRequest) -> Result<UnitRequest> {
        check_align(request.align)?;
        let refused = || ErrorKind::from(MemoryRefusal::Size(request.bytes));
        let units = rounded_units(request.bytes).ok_or_else(refused)?;
        let align = (request.align / UNIT_BYTES).max(1);
        self.backing.check_align(align)?;
        let wanted = UnitRequest { units, align, phase: self.backing.phase(), bytes: request.bytes };
        if u32::try_from(wanted.padded_units()).is_err() {
            return Err(refused().into());
        }
        Ok(wanted)
    }
}

fn check_align(align: u64) -> Result<()> {
    if align.is_power_of_two() && align <= AllocationRequest::MAX_ALIGN {
        return Ok(());
    }
    Err(ErrorKind::from(MemoryRefusal::Alignment { align, most: AllocationRequest::MAX_ALIGN }).into())
}

pub(super) fn growth_of(arena: &Arena, number: u32, wanted: UnitRequest) -> Growth {
    let request_units = wanted.padded_units();
    Growth {
        arena: number,
        missing_units: request_units.saturating_sub(u64::from(arena.tail_units())).max(1),
        request_units,
        owned_units: arena.owned_units(),
    }
}
