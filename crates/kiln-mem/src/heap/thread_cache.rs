//! Freed blocks that a thread keeps for itself, by stream and size class.
//!
//! The commonest allocation is one of a size that the same thread freed a moment ago on the same stream. Its block comes from a list
//! here, without a lock and without touching the arena, for which it has been in use all along. What a thread keeps is limited to a small
//! part of what the arena owns, so that blocks that are not joined with their neighbours cannot fragment the heap. What is over the limit
//! goes back in batches.

use super::BlockUnits;
use super::arena::TakenPiece;
use super::size_class::{CLASSES, class_units};
use crate::block::{BlockRecord, RecordList};

/// Blocks that a thread keeps for a stream, over all classes.
const BLOCKS_LIMIT: usize = 512;
/// How many blocks go back at once.
pub(crate) const BATCH: usize = 32;
/// Streams that are found at once; others are searched for.
const WAYS: usize = 16;

/// The freed blocks of one thread.
#[derive(Debug)]
pub(crate) struct ThreadCache {
    streams: Vec<StreamCache>,
    /// Stream and index of the entry last used with a stream of this remainder.
    recent: [(u32, u32); WAYS],
}

/// The freed blocks of one thread and one stream.
#[derive(Debug)]
pub(crate) struct StreamCache {
    stream: u32,
    pub(crate) arena: u32,
    classes: [RecordList; CLASSES],
    units: u64,
    limit_units: u64,
    /// The class that the next batch begins with.
    next_class: usize,
    count: usize,
}

/// Blocks on their way back to an arena.
#[derive(Debug)]
pub(crate) struct Batch {
    taken: [TakenPiece; BATCH],
    len: usize,
    /// The records of the blocks, to be used again.
    pub(crate) records: RecordList,
}

impl ThreadCache {
    pub(crate) fn new() -> Self {
        Self { streams: Vec::new(), recent: [(u32::MAX, 0); WAYS] }
    }

    /// The blocks of a stream, if the thread keeps any.
    #[inline]
    pub(crate) fn stream(&mut self, stream: u32) -> Option<&mut StreamCache> {
        let (known, at) = self.recent[stream as usize % WAYS];
        if known == stream {
            return self.streams.get_mut(at as usize);
        }
        self.search(stream)
    }

    /// The same, if it takes no search.
    #[inline(always)]
    pub(crate) fn recent_stream(&mut self, stream: u32) -> Option<&mut StreamCache> {
        let (known, at) = self.recent[stream as usize % WAYS];
        if known == stream { self.streams.get_mut(at as usize) } else { None }
    }

    /// The same; an empty entry is made if there is none.
    pub(crate) fn stream_or_new(&mut self, stream: u32, arena: u32) -> &mut StreamCache {
        let at = self.streams.iter().position(|cache| cache.stream == stream).unwrap_or_else(|| {
            self.streams.push(StreamCache::new(stream, arena));
            self.streams.len() - 1
        });
        self.recent[stream as usize % WAYS] = (stream, at as u32);
        &mut self.streams[at]
    }

    /// The blocks of all streams.
    pub(crate) fn streams(&mut self) -> &mut [StreamCache] {
        &mut self.streams
    }

    /// Forgets a stream that is gone and has no block here.
    pub(crate) fn forget(&mut self, stream: u32) {
        self.streams.retain(|cache| cache.stream != stream || cache.count > 0);
        self.recent = [(u32::MAX, 0); WAYS];
    }

    #[cold]
    fn search(&mut self, stream: u32) -> Option<&mut StreamCache> {
        let at = self.streams.iter().position(|cache| cache.stream == stream)?;
        self.recent[stream as usize % WAYS] = (stream, at as u32);
        self.streams.get_mut(at)
    }
}

impl StreamCache {
    fn new(stream: u32, arena: u32) -> Self {
        Self {
            stream,
            arena,
            classes: [const { RecordList::new() }; CLASSES],
            units: 0,
            limit_units: 0,
            next_class: 0,
            count: 0,
        }
    }

    /// How many blocks there are.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Units in them.
    pub(crate) fn units(&self) -> u64 {
        self.units
    }

    pub(crate) fn set_limit(&mut self, units: u64) {
        self.limit_units = units;
    }

    /// A block of a class.
    #[inline(always)]
    pub(crate) fn pop(&mut self, class: usize) -> Option<Box<BlockRecord>> {
        let record = self.classes.get_mut(class)?.pop()?;
        self.units -= u64::from(class_units(class));
        self.count -= 1;
        Some(record)
    }

    /// Keeps a block of a class, with its units. The block comes back if there are as many as may be kept.
    pub(crate) fn push(
        &mut self,
        class: usize,
        units: u32,
        record: Box<BlockRecord>,
    ) -> Result<(), Box<BlockRecord>> {
        if self.count >= BLOCKS_LIMIT {
            return Err(record);
        }
        self.classes[class].push(record);
        self.units += u64::from(units);
        self.count += 1;
        Ok(())
    }

    /// Keeps a block of a class, with its units, if the cache is not full then. The block comes back if it is.
    #[inline(always)]
    pub(crate) fn push_within(
        &mut self,
        class: usize,
        units: u32,
        record: Box<BlockRecord>,
    ) -> Result<(), Box<BlockRecord>> {
        let (sum, count) = (self.units + u64::from(units), self.count + 1);
        match self.classes.get_mut(class) {
            Some(list) if sum <= self.limit_units && count < BLOCKS_LIMIT => list.push(record),
            _ => return Err(record),
        }
        (self.units, self.count) = (sum, count);
        Ok(())
    }

    /// Whether more is kept than should be, or another block would not be kept.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.units > self.limit_units || self.count >= BLOCKS_LIMIT
    }

    /// Takes blocks out, one of each class in turn, until half of the limit is left and others can be kept again, or the batch is full.
    pub(crate) fn shrink(&mut self) -> Batch {
        self.take_out(1, |cache| cache.units > cache.limit_units / 2 || cache.count > BLOCKS_LIMIT - BATCH)
    }

    /// Takes blocks out, class after class, until none is left or the batch is full.
    pub(crate) fn drain(&mut self) -> Batch {
        self.take_out(0, |_| true)
    }

    /// Takes blocks out while `goes_on` says so, and goes on by `stride` classes after each.
    #[inline]
    fn take_out(&mut self, stride: usize, goes_on: impl Fn(&Self) -> bool) -> Batch {
        let mut batch = Batch::new();
        while batch.len < BATCH && goes_on(self) {
            let Some(class) = self.occupied_class() else { break };
            let Some(record) = self.pop(class) else { break };
            batch.push(record);
            self.next_class = (class + stride) % CLASSES;
        }
        batch
    }

    /// The first class at or after `next_class` that has a block.
    fn occupied_class(&self) -> Option<usize> {
        let first = |classes: &[RecordList]| classes.iter().position(|list| !list.is_empty());
        let (before, after) = self.classes.split_at(self.next_class);
        first(after).map(|class| self.next_class + class).or_else(|| first(before))
    }
}

impl Batch {
    fn new() -> Self {
        Self { taken: [TakenPiece { piece: 0, start: 0 }; BATCH], len: 0, records: RecordList::new() }
    }

    fn push(&mut self, record: Box<BlockRecord>) {
        self.taken[self.len] = BlockUnits::of(record.token).taken;
        self.len += 1;
        self.records.push(record);
    }

    pub(crate) fn as_slice(&self) -> &[TakenPiece] {
        &self.taken[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use kiln_driver::DeviceAddress;

    use super::*;
    use crate::block::{BlockParts, ResourceKey};
    use crate::heap::size_class::class_of;
    use crate::last_use::StreamKey;
    use crate::tag::AllocTag;

    fn record(piece: u32) -> Box<BlockRecord> {
        let taken = TakenPiece { piece, start: u64::from(piece) * 1000 };
        let parts = BlockParts {
            place: None,
            address: DeviceAddress(0),
            bytes: 1,
            stream: StreamKey::default(),
            tag: AllocTag::default(),
            token: BlockUnits { taken, units: 1, arena: 0 }.token(),
        };
        BlockRecord::boxed(ResourceKey::fresh(), parts).unwrap()
    }

    fn push(cache: &mut StreamCache, class: usize, units: u32, piece: u32) -> bool {
        cache.push(class, units, record(piece)).is_ok()
    }

    fn pieces(batch: &Batch) -> Vec<u32> {
        batch.as_slice().iter().map(|taken| taken.piece).collect()
    }

    #[test]
    fn what_was_freed_last_comes_first_and_only_for_its_class_and_stream() {
        let mut cache = ThreadCache::new();
        assert!(cache.stream(7).is_none());
        let of_stream = cache.stream_or_new(7, 0);
        of_stream.set_limit(1 << 20);
        let class = class_of(100);
        for piece in 0..3 {
            assert!(push(of_stream, class, class_units(class), piece));
        }
        assert!(cache.stream(7 + WAYS as u32).is_none());
        let of_stream = cache.stream(7).unwrap();
        assert!(of_stream.pop(class_of(50)).is_none());
        let newest = of_stream.pop(class).map(|record| BlockUnits::of(record.token).taken);
        assert_eq!(newest, Some(TakenPiece { piece: 2, start: 2000 }));
        assert_eq!((of_stream.count(), of_stream.units()), (2, 2 * u64::from(class_units(class))));
    }

    #[test]
    fn a_cache_over_its_limit_shrinks_to_half_and_drains_to_nothing() {
        let mut cache = ThreadCache::new();
        let cache = cache.stream_or_new(1, 0);
        cache.set_limit(100);
        for piece in 0..120 {
            assert!(push(cache, piece as usize % 5, piece % 5 + 1, piece));
        }
        assert!(cache.is_over());
        let mut seen = Vec::new();
        while cache.is_over() {
            seen.extend(pieces(&cache.shrink()));
        }
        assert!(cache.units() <= 100 && cache.units() > 40, "{}", cache.units());
        while cache.count() > 0 {
            seen.extend(pieces(&cache.drain()));
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..120).collect::<Vec<_>>());
        assert_eq!(cache.units(), 0);
    }

    #[test]
    fn a_cache_shrinks_by_one_block_of_each_class_in_turn() {
        let mut cache = ThreadCache::new();
        let cache = cache.stream_or_new(1, 0);
        for class in [3, 3, 3, 3, 9, 170] {
            assert!(push(cache, class, class_units(class), class as u32));
        }
        cache.set_limit(cache.units() - 1);
        assert_eq!(pieces(&cache.shrink()), [3, 9, 170]);
        assert_eq!(cache.drain().as_slice().len(), 3);
    }

    #[test]
    fn a_full_cache_keeps_no_more() {
        let mut cache = ThreadCache::new();
        let cache = cache.stream_or_new(1, 0);
        for piece in 0..BLOCKS_LIMIT as u32 {
            assert!(push(cache, 0, 1, piece));
        }
        assert!(!push(cache, 0, 1, 0));
        // However small the blocks are, a full cache makes room again.
        cache.set_limit(1 << 20);
        assert!(cache.is_over());
        assert_eq!(cache.shrink().as_slice().len(), BATCH);
        assert!(!cache.is_over() && push(cache, 0, 1, 0));
    }
}
