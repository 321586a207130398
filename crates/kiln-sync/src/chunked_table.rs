//! A table that grows without moving what is in it.

use std::num::NonZeroU64;
use std::sync::OnceLock;

const FIRST_CHUNK: usize = 8;
const CHUNKS: usize = 24;

/// Entries by number, made when they are first asked for. They never move, so a reader needs no lock.
#[derive(Debug)]
pub struct ChunkedTable<T> {
    chunks: [OnceLock<Box<[Padded<T>]>>; CHUNKS],
}

/// Two cache lines apart, because the processor fetches them in pairs.
#[repr(align(128))]
#[derive(Debug)]
struct Padded<T>(OnceLock<T>);

impl<T> Default for ChunkedTable<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> ChunkedTable<T> {
    /// A table without entries.
    pub const fn new() -> Self {
        Self { chunks: [const { OnceLock::new() }; CHUNKS] }
    }

    /// The entry with this number, if it was made.
    #[inline]
    pub fn get(&self, number: u32) -> Option<&T> {
        if number < FIRST_CHUNK as u32 {
            // Nearly all there are, and found without working out where.
            return self.chunks[0].get()?.get(number as usize)?.0.get();
        }
        self.at(ChunkIndex::of(number))
    }

    /// The entry at an index, if it was made.
    #[inline]
    pub fn at(&self, index: ChunkIndex) -> Option<&T> {
        self.chunks.get(index.chunk())?.get()?.get(index.offset())?.0.get()
    }

    /// The entry with this number, which `make` makes if it is not there. Numbers are expected to be small and dense: a chunk is as long
    /// as the largest number in it asks for. Numbers above some hundred million share the last entry.
    #[inline]
    pub fn get_or_make(&self, number: u32, make: impl FnOnce() -> T) -> &T {
        match self.get(number) {
            Some(entry) => entry,
            None => self.make(number, make),
        }
    }

    /// All entries there are, in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> + Clone {
        let chunks = self.chunks.iter().filter_map(OnceLock::get);
        chunks.flat_map(|chunk| chunk.iter().filter_map(|entry| entry.0.get()))
    }

    #[cold]
    fn make(&self, number: u32, make: impl FnOnce() -> T) -> &T {
        let index = ChunkIndex::of(number);
        let (chunk, offset) = (index.chunk().min(CHUNKS - 1), index.offset());
        let entries = self.chunks[chunk]
            .get_or_init(|| (0..FIRST_CHUNK << chunk).map(|_| Padded(OnceLock::new())).collect());
        entries[offset.min(entries.len() - 1)].0.get_or_init(make)
    }
}

/// Where an entry of a [`ChunkedTable`] lies: chunk `c` holds `8 << c`. One word, never zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChunkIndex(NonZeroU64);

impl ChunkIndex {
    const CHUNK_SHIFT: u32 = 40;

    /// Of the entry with this number.
    #[inline]
    pub fn of(number: u32) -> Self {
        let shifted = u64::from(number) + FIRST_CHUNK as u64;
        let chunk = (shifted / FIRST_CHUNK as u64).ilog2();
        let offset = shifted - ((FIRST_CHUNK as u64) << chunk);
        Self(NonZeroU64::MIN | u64::from(chunk) << Self::CHUNK_SHIFT | offset << 1)
    }

    /// The number of the entry.
    pub fn number(self) -> u32 {
        ((FIRST_CHUNK << self.chunk()) - FIRST_CHUNK + self.offset()) as u32
    }

    #[inline]
    fn chunk(self) -> usize {
        (self.0.get() >> Self::CHUNK_SHIFT) as usize
    }

    #[inline]
    fn offset(self) -> usize {
        (self.0.get() as u32 >> 1) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_its_own_place() {
        let mut next = (0, 0);
        let numbers = if cfg!(miri) { 500 } else { 50_000 };
        for number in 0..numbers {
            let index = ChunkIndex::of(number);
            assert_eq!((index.chunk(), index.offset()), next);
            assert_eq!(index.number(), number);
            let last = next.1 + 1 == FIRST_CHUNK << next.0;
            next = if last { (next.0 + 1, 0) } else { (next.0, next.1 + 1) };
        }
    }

    #[test]
    fn entries_are_made_once_and_stay() {
        let table = ChunkedTable::new();
        let first: *const u32 = table.get_or_make(100, || 7);
        assert!(table.get(99).is_none());
        assert_eq!(*table.get_or_make(100, || 8), 7);
        assert!(std::ptr::eq(first, table.get(100).unwrap()));
        assert_eq!(table.iter().copied().collect::<Vec<_>>(), [7]);
    }
}
