//! A table that grows without moving what is in it.

use std::sync::OnceLock;

const FIRST_CHUNK: usize = 8;
const CHUNKS: usize = 24;

/// Entries by number, made when they are first asked for. They never move, so a reader needs no lock.
#[derive(Debug)]
pub(crate) struct Chunked<T> {
    chunks: [OnceLock<Box<[Padded<T>]>>; CHUNKS],
}

/// Two cache lines apart, because the processor fetches them in pairs.
#[repr(align(128))]
#[derive(Debug)]
struct Padded<T>(OnceLock<T>);

impl<T> Chunked<T> {
    pub(crate) const fn new() -> Self {
        Self { chunks: [const { OnceLock::new() }; CHUNKS] }
    }

    /// The entry with this number, if it was made.
    #[inline]
    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        let (chunk, offset) = locate(number);
        self.chunks.get(chunk)?.get()?.get(offset)?.0.get()
    }

    /// The entry with this number. Numbers above some hundred million share the last entry; no process has as many
    /// threads or streams.
    #[inline]
    pub(crate) fn get_or_make(&self, number: u32, make: impl FnOnce() -> T) -> &T {
        match self.get(number) {
            Some(entry) => entry,
            None => self.make(number, make),
        }
    }

    /// All entries there are, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        let chunks = self.chunks.iter().filter_map(OnceLock::get);
        chunks.flat_map(|chunk| chunk.iter().filter_map(|entry| entry.0.get()))
    }

    #[cold]
    fn make(&self, number: u32, make: impl FnOnce() -> T) -> &T {
        let (chunk, offset) = locate(number);
        let chunk = chunk.min(CHUNKS - 1);
        let entries = self.chunks[chunk]
            .get_or_init(|| (0..FIRST_CHUNK << chunk).map(|_| Padded(OnceLock::new())).collect());
        entries[offset.min(entries.len() - 1)].0.get_or_init(make)
    }
}

/// Chunk and offset of an entry: chunk `c` holds `8 << c`.
#[inline]
fn locate(number: u32) -> (usize, usize) {
    let shifted = number as usize + FIRST_CHUNK;
    let chunk = (shifted / FIRST_CHUNK).ilog2() as usize;
    (chunk, shifted - (FIRST_CHUNK << chunk))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_a_place_of_its_own() {
        let mut next = (0, 0);
        for number in 0..50_000 {
            assert_eq!(locate(number), next);
            next = if next.1 + 1 == FIRST_CHUNK << next.0 { (next.0 + 1, 0) } else { (next.0, next.1 + 1) };
        }
    }

    #[test]
    fn entries_are_made_once_and_stay() {
        let table = Chunked::new();
        let first: *const u32 = table.get_or_make(100, || 7);
        assert!(table.get(99).is_none());
        assert_eq!(*table.get_or_make(100, || 8), 7);
        assert!(std::ptr::eq(first, table.get(100).unwrap()));
        assert_eq!(table.iter().copied().collect::<Vec<_>>(), [7]);
    }
}
