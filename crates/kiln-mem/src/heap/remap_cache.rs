//! Remaps by the free pieces they were made of, so that a program that repeats itself need not search for frames again.
//!
//! Which frames are selected depends on which pieces are free and on how many pages are wanted. A fingerprint of both finds the remap that was
//! made before. Its pieces are then looked up by their numbers, or by their addresses if a number belongs to another piece now. If one is
//! not there, frames are searched for as if there were no entry, so two equal fingerprints of different states do no harm. Without the
//! cache, a remap that is mapped already costs 2.4 us, of which the search is most; with it, 0.4 to 0.7 us.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use super::physical_page_selection::FrameRun;
use super::remap_table::KeyHasher;
use crate::try_reserve::TryGrow;

/// Entries of the cache. When it is full it is emptied, and fills again with what still happens.
const REMAPS_LIMIT: usize = 1 << 15;
/// Pieces in all entries.
const SOURCES_LIMIT: usize = 1 << 18;

/// Remaps by fingerprint.
#[derive(Debug, Default)]
pub(crate) struct RemapCache {
    remaps: HashMap<u64, CachedRemap, BuildHasherDefault<KeyHasher>>,
    /// The pieces of all remaps, one remap after the other.
    sources: Vec<RemapSource>,
}

/// A free piece, and the frames that were taken from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RemapSource {
    pub(crate) start: u64,
    pub(crate) units: u32,
    /// The piece that had these addresses, and probably has them again.
    pub(crate) piece: u32,
    pub(crate) row: FrameRun,
}

#[derive(Clone, Copy, Debug)]
struct CachedRemap {
    remap: u32,
    from: u32,
    end: u32,
}

impl RemapCache {
    /// The remap with a fingerprint, and where its frames were.
    #[inline]
    pub(crate) fn find(&self, fingerprint: u64) -> Option<(u32, &[RemapSource])> {
        let CachedRemap { remap, from, end } = *self.remaps.get(&fingerprint)?;
        Some((remap, self.sources.get(from as usize..end as usize)?))
    }

    /// Notes where the frames of a remap were.
    pub(crate) fn insert(
        &mut self,
        fingerprint: u64,
        remap: u32,
        sources: impl Iterator<Item = RemapSource>,
    ) {
        if self.remaps.len() >= REMAPS_LIMIT || self.sources.len() >= SOURCES_LIMIT {
            self.clear();
        }
        let (least, most) = sources.size_hint();
        if self.remaps.try_grow(1).and(self.sources.try_grow(most.unwrap_or(least))).is_err() {
            // This is a cache: without host memory for it, frames are searched for again.
            return;
        }
        let from = self.sources.len() as u32;
        self.sources.extend(sources);
        self.remaps.insert(fingerprint, CachedRemap { remap, from, end: self.sources.len() as u32 });
    }

    /// Removes all entries, because remaps or frames are removed.
    pub(crate) fn clear(&mut self) {
        self.remaps.clear();
        self.sources.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(start: u64) -> RemapSource {
        let row = FrameRun { first_page: 0, pages: 1, hint: (0, 0, 1), is_first: true, is_last: true };
        RemapSource { start, units: 8192, piece: 1, row }
    }

    #[test]
    fn the_newest_of_a_state_is_recalled_until_all_is_forgotten() {
        let mut remap_cache = RemapCache::default();
        remap_cache.insert(7, 1, [source(0), source(8192)].into_iter());
        remap_cache.insert(8, 2, [source(5)].into_iter());
        remap_cache.insert(7, 3, [source(1)].into_iter());
        assert_eq!(remap_cache.find(7), Some((3, &[source(1)][..])));
        assert_eq!(remap_cache.find(8), Some((2, &[source(5)][..])));
        assert_eq!(remap_cache.find(9), None);
        remap_cache.clear();
        assert_eq!(remap_cache.find(8), None);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut remap_cache = RemapCache::default();
        for fingerprint in 0..3 * REMAPS_LIMIT as u64 {
            remap_cache.insert(fingerprint, 0, (0..20).map(source));
        }
        assert!(remap_cache.remaps.len() <= REMAPS_LIMIT && remap_cache.sources.len() < SOURCES_LIMIT + 20);
        let newest = 3 * REMAPS_LIMIT as u64 - 1;
        assert_eq!(remap_cache.find(newest).map(|(_, sources)| sources.len()), Some(20));
    }
}
