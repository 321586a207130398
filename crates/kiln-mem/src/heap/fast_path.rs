//! Allocation and free from the thread's cache, without a lock.
//!
//! [`allocate_fast`](Heap::allocate_fast) and [`free_fast`](Heap::free_fast) take a block from the cache of the thread and put it back. On that way
//! they call no function and cannot panic, so that the compiler saves next to no register. Everything that is not as usual, such as a tag
//! that has no counter at hand or a thread that has not used the heap lately, ends in a call in tail position.

use kiln_driver::DeviceAddress;

use super::block_token::BlockUnits;
use super::locked_arena::Searched;
use super::size_class::{CLASSED_UNITS, UNIT_BYTES, class_of, class_units, large_units};
use super::{Heap, ThreadPart};
use crate::allocation_counters::AllocationCounters;
use crate::block::{BlockParts, BlockRecord, DeviceBlock};
use crate::error::{FreeError, Result};
use crate::last_use::{Stamps, StreamKey};
use crate::request::AllocationRequest;

/// Requests of up to so many bytes are common; 256 GiB.
const COMMON_BYTES: u64 = 1 << 38;

/// What was found for a request.
enum FoundBlock {
    /// A block that this thread freed before.
    Cached(Box<BlockRecord>),
    /// Units of an arena, and a record to use again, if there is one.
    Listed(BlockUnits, Option<Box<BlockRecord>>),
}

impl Heap {
    /// A block that this thread freed before, if taking it is all there is to do; otherwise a block from wherever it can be had.
    #[inline(always)]
    pub(super) fn allocate_fast(&self, request: &AllocationRequest) -> Result<DeviceBlock> {
        let AllocationRequest { bytes, align, stream, tag } = *request;
        // Zero bytes wrap around to a huge number and are unusual.
        let last_unit = bytes.wrapping_sub(1) / UNIT_BYTES;
        if last_unit >= u64::from(CLASSED_UNITS) || align != AllocationRequest::MIN_ALIGN {
            return self.allocate_unusual(request);
        }
        let Some(part) = self.parts.recent() else { return self.allocate_unusual(request) };
        let Some(count) = AllocationCounters::plan_allocated(&part.counters, tag, bytes) else {
            return self.allocate_unusual(request);
        };
        let Some(mut cache) = part.cache.try_lock_owner() else { return self.allocate_unusual(request) };
        let Some(of_stream) = cache.recent_stream(stream.key().index() as u32) else {
            drop(cache);
            return self.allocate_unusual(request);
        };
        let Some(mut record) = of_stream.pop(class_of(last_unit as u32 + 1)) else {
            let arena = of_stream.arena;
            drop(cache);
            return self.allocate_listed(part, arena, request);
        };
        drop(cache);
        // The rest is as it was when the block was freed.
        (record.bytes, record.tag) = (bytes, tag);
        count.note_allocated(bytes);
        Ok(DeviceBlock::of_record(record))
    }

    /// A block for a request that the cache was not looked at for.
    #[inline(never)]
    fn allocate_unusual(&self, request: &AllocationRequest) -> Result<DeviceBlock> {
        let part = self.part();
        let last = request.bytes.wrapping_sub(1);
        let is_aligned = request.align <= AllocationRequest::MIN_ALIGN && request.align.is_power_of_two();
        if !is_aligned || last >= COMMON_BYTES {
            return self.allocate_uncommon(part, request, Searched::Nothing);
        }
        let found = self.take_common(part, request.stream.key(), (last / UNIT_BYTES) as u32 + 1);
        self.finish(part, request, found)
    }

    /// A block for a request that the cache has none for; the arena is that of its stream.
    #[inline(never)]
    fn allocate_listed(
        &self,
        part: &ThreadPart,
        arena: u32,
        request: &AllocationRequest,
    ) -> Result<DeviceBlock> {
        let units = (request.bytes.wrapping_sub(1) / UNIT_BYTES) as u32 + 1;
        self.finish(part, request, self.take_listed(arena, units))
    }

    /// Makes a block of what was found for a request, or looks further.
    #[inline]
    fn finish(
        &self,
        part: &ThreadPart,
        request: &AllocationRequest,
        found: std::result::Result<FoundBlock, Searched>,
    ) -> Result<DeviceBlock> {
        match found {
            Ok(FoundBlock::Cached(mut record)) => {
                (record.bytes, record.tag) = (request.bytes, request.tag);
                self.counters.note_allocated(&part.counters, request.tag, request.bytes);
                Ok(DeviceBlock::of_record(record))
            }
            Ok(FoundBlock::Listed(block_units, record)) => self.block(part, request, block_units, record),
            Err(tried) => self.allocate_uncommon(part, request, tried),
        }
    }

    /// The block of units that were taken out of an arena, in a record that is used again if there is one.
    pub(super) fn block(
        &self,
        part: &ThreadPart,
        request: &AllocationRequest,
        block_units: BlockUnits,
        record: Option<Box<BlockRecord>>,
    ) -> Result<DeviceBlock> {
        let (place, address) = match self.backing.locate(block_units.taken.start) {
            // A block of no bytes has an address, and no memory that could be named.
            Some((place, address)) => ((block_units.units > 0).then_some(place), address),
            None => (None, DeviceAddress(0)),
        };
        let (stream, token) = (request.stream.key(), block_units.token());
        let AllocationRequest { bytes, tag, .. } = *request;
        let parts = BlockParts { place, address, bytes, stream, tag, token };
        let block = match record {
            Some(mut record) => {
                record.rewrite(self.key, parts);
                DeviceBlock::of_record(record)
            }
            None => DeviceBlock::new(self.key, parts).inspect_err(|_| self.return_units(block_units))?,
        };
        self.counters.note_allocated(&part.counters, tag, bytes);
        Ok(block)
    }

    /// Gives a block to the cache of this thread, if that is all there is to do; otherwise to where it belongs. No work on other streams uses
    /// it.
    #[inline(always)]
    pub(super) fn free_fast(&self, block: DeviceBlock, uses: &Stamps) -> std::result::Result<(), FreeError> {
        let (block_units, bytes) = (BlockUnits::of(block.token()), block.bytes());
        // A block of no bytes has no units.
        if block_units.units.wrapping_sub(1) >= CLASSED_UNITS || !uses.is_empty() {
            return self.free_unusual(block, uses);
        }
        let Some(part) = self.parts.recent() else { return self.free_unusual(block, uses) };
        let Some(count) = AllocationCounters::plan_freed(&part.counters, block.tag(), bytes) else {
            return self.free_unusual(block, uses);
        };
        let Some(mut cache) = part.cache.try_lock_owner() else { return self.free_unusual(block, uses) };
        let of_stream = cache.recent_stream(block.stream().index() as u32);
        let Some(of_stream) = of_stream.filter(|of_stream| of_stream.arena == block_units.arena) else {
            drop(cache);
            return self.free_unusual(block, uses);
        };
        let class = class_of(block_units.units);
        if let Err(record) = of_stream.push_within(class, block_units.units, block.into_record()) {
            drop(cache);
            return self.free_unusual(DeviceBlock::of_record(record), uses);
        }
        drop(cache);
        count.note_freed(bytes);
        Ok(())
    }

    /// Gives back a block that the cache did not take as it is.
    #[inline(never)]
    fn free_unusual(&self, block: DeviceBlock, uses: &Stamps) -> std::result::Result<(), FreeError> {
        let part = self.part();
        if !uses.is_empty() {
            return self.free_to_arena(part, block, uses);
        }
        let (tag, bytes) = (block.tag(), block.bytes());
        let record = block.into_record();
        let (block_units, stream) = (BlockUnits::of(record.token), record.stream);
        let kept = match block_units.units {
            1..=CLASSED_UNITS => self.free_to_cache(part, block_units, stream, record),
            // A block of no bytes has no units.
            0 => Err(record),
            _ => self.free_to_lists(block_units, stream, record),
        };
        match kept {
            Ok(()) => {
                self.counters.note_freed(&part.counters, tag, bytes);
                Ok(())
            }
            Err(record) => self.free_to_arena(part, DeviceBlock::of_record(record), uses),
        }
    }

    /// A block from the cache of this thread or from the arena of the stream, where that takes no more than looking into their lists;
    /// otherwise, how far it got.
    fn take_common(
        &self,
        part: &ThreadPart,
        stream: StreamKey,
        units: u32,
    ) -> std::result::Result<FoundBlock, Searched> {
        let Some(mut cache) = part.cache.try_lock() else { return Err(Searched::Nothing) };
        let Some(of_stream) = cache.stream(stream.index() as u32) else { return Err(Searched::Nothing) };
        if units <= CLASSED_UNITS
            && let Some(record) = of_stream.pop(class_of(units))
        {
            return Ok(FoundBlock::Cached(record));
        }
        let arena = of_stream.arena;
        drop(cache);
        self.take_listed(arena, units)
    }

    /// A block from an arena of a stream that this thread has a cache for.
    #[inline]
    fn take_listed(&self, arena: u32, units: u32) -> std::result::Result<FoundBlock, Searched> {
        let Some(cell) = self.arenas.get(arena) else { return Err(Searched::Nothing) };
        let units = if units <= CLASSED_UNITS { class_units(class_of(units)) } else { large_units(units) };
        let mut state = cell.lock();
        let taken = state.take_common(units)?;
        Ok(FoundBlock::Listed(BlockUnits { taken, units, arena }, state.records.pop()))
    }

    /// Gives a block to the cache of this thread, which gives others back to their arena if it is too many.
    fn free_to_cache(
        &self,
        part: &ThreadPart,
        block_units: BlockUnits,
        stream: StreamKey,
        record: Box<BlockRecord>,
    ) -> std::result::Result<(), Box<BlockRecord>> {
        let Some(mut cache) = part.cache.try_lock() else { return Err(record) };
        let of_stream = cache.stream(stream.index() as u32).filter(|cache| cache.arena == block_units.arena);
        let Some(of_stream) = of_stream else { return Err(record) };
        of_stream.push(class_of(block_units.units), block_units.units, record)?;
        let is_over = of_stream.is_over();
        drop(cache);
        if is_over {
            self.shrink_cache(part, stream);
        }
        Ok(())
    }

    /// Gives a block to the lists of its arena, if that is all there is to do.
    #[inline]
    fn free_to_lists(
        &self,
        block_units: BlockUnits,
        stream: StreamKey,
        record: Box<BlockRecord>,
    ) -> std::result::Result<(), Box<BlockRecord>> {
        let Some(cell) = self.arenas.get(block_units.arena).filter(|cell| cell.stream() == stream) else {
            return Err(record);
        };
        let now = self.order.latest(stream) as u32;
        let mut state = cell.lock();
        if !state.give_common(block_units.taken, now) {
            return Err(record);
        }
        state.records.push(record);
        Ok(())
    }
}
