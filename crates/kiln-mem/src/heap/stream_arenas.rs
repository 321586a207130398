//! Which arena belongs to which stream, and what happens when a stream ends.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::locked_arena::{ArenaState, LockedArena};
use super::size_class::UNIT_BYTES;
use super::{Heap, ThreadPart};
use crate::last_use::{Stamp, StreamKey};

/// A thread caches, for a stream, at most this part of what the stream's arena has ...
const CACHE_PART: u64 = 64;
/// ... but at least this ...
const CACHE_LEAST_UNITS: u64 = (1 << 20) / UNIT_BYTES;
/// ... and no more than this.
const CACHE_MOST_UNITS: u64 = (128 << 20) / UNIT_BYTES;

/// What a thread may cache for a stream whose arena owns `owned_units`.
#[inline]
pub(super) fn cache_limit(owned_units: u64) -> u64 {
    (owned_units / CACHE_PART).clamp(CACHE_LEAST_UNITS, CACHE_MOST_UNITS)
}

impl Heap {
    /// Says that a stream has ended or is about to. What it freed is given to other streams once its work is done; blocks that were allocated
    /// for it stay valid and can be freed as before.
    pub fn release_stream(&self, stream: StreamKey) {
        let number = self.streams.write().unwrap_or_else(PoisonError::into_inner).remove(&stream);
        let Some(cell) = number.and_then(|number| self.arenas.get(number)) else { return };
        self.empty_all_caches(|cache| cache.arena == cell.number);
        for part in self.parts.iter() {
            part.cache.visit().forget(stream.index() as u32);
        }
        self.orphans.lock().unwrap_or_else(PoisonError::into_inner).push(cell.number);
    }

    /// The arena of a stream, made if need be.
    #[inline]
    pub(super) fn arena_of(&self, part: &ThreadPart, stream: StreamKey) -> &LockedArena {
        let known = part.with_cache(|cache| cache.stream(stream.index() as u32).map(|cache| cache.arena));
        match known.and_then(|number| self.arenas.get(number)) {
            Some(cell) => cell,
            None => self.find_arena(part, stream),
        }
    }

    /// Whether the stream of an arena is still there.
    pub(super) fn is_known(&self, cell: &LockedArena) -> bool {
        let streams = self.streams.read().unwrap_or_else(PoisonError::into_inner);
        streams.get(&cell.stream()) == Some(&cell.number)
    }

    /// Gives what a thread cached for a stream back to its arena; returns how many blocks.
    pub(super) fn empty_cache(&self, part: &ThreadPart, cell: &LockedArena) -> usize {
        let stream = cell.stream().index() as u32;
        let cached = part.with_cache(|cache| cache.stream(stream).map_or(0, |cache| cache.count()));
        if cached > 0 {
            self.give_cache(part, cell, &mut cell.lock());
        }
        cached
    }

    /// The same for an arena that is locked already.
    pub(super) fn give_cache(&self, part: &ThreadPart, cell: &LockedArena, state: &mut ArenaState) {
        let stream = cell.stream();
        let now = self.order.latest(stream) as u32;
        loop {
            let batch =
                part.with_cache(|cache| cache.stream(stream.index() as u32).map(|cache| cache.drain()));
            let Some(batch) = batch.filter(|batch| !batch.as_slice().is_empty()) else { return };
            state.give_batch(batch, now);
        }
    }

    /// Limits what a thread caches to a part of what the arena has.
    pub(super) fn limit_cache(&self, part: &ThreadPart, cell: &LockedArena, owned_units: u64) {
        let (stream, arena) = (cell.stream().index() as u32, cell.number);
        part.with_cache(|cache| cache.stream_or_new(stream, arena).set_limit(cache_limit(owned_units)));
    }

    #[cold]
    fn find_arena(&self, part: &ThreadPart, stream: StreamKey) -> &LockedArena {
        let known = self.streams.read().unwrap_or_else(PoisonError::into_inner).get(&stream).copied();
        let cell = match known.and_then(|number| self.arenas.get(number)) {
            Some(cell) => cell,
            None => self.new_arena(stream),
        };
        let owned = cell.lock().arena.owned_units();
        self.limit_cache(part, cell, owned);
        cell
    }

    fn new_arena(&self, stream: StreamKey) -> &LockedArena {
        let mut streams = self.streams.write().unwrap_or_else(PoisonError::into_inner);
        let number = streams.get(&stream).copied().or_else(|| self.adopt(stream));
        let number = number.unwrap_or_else(|| self.next_arena.fetch_add(1, Ordering::Relaxed));
        streams.insert(stream, number);
        self.arenas.get_or_make(number, || LockedArena::new(number, stream))
    }

    /// An arena whose stream is gone and whose work is done, made this stream's.
    fn adopt(&self, stream: StreamKey) -> Option<u32> {
        let mut orphans = self.orphans.lock().unwrap_or_else(PoisonError::into_inner);
        let done = |number: &u32| {
            self.arenas.get(*number).is_some_and(|cell| {
                let old = cell.stream();
                let last = Stamp { stream: old, number: self.order.latest(old) };
                self.order.is_complete(last)
            })
        };
        let at = orphans.iter().position(done)?;
        let number = orphans.swap_remove(at);
        let cell = self.arenas.get(number)?;
        cell.lock().arena.forget_stamps();
        cell.set_stream(stream);
        Some(number)
    }
}
