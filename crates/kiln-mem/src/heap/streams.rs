//! Which arena belongs to which stream, and what happens when a stream goes.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::arena_cell::{ArenaCell, Books};
use super::size_class::UNIT_BYTES;
use super::{Heap, Shard};
use crate::stamp::{Stamp, StreamKey};

/// A thread's stock for a stream is at most this part of what the stream's arena has ...
const STOCK_PART: u64 = 64;
/// ... but at least this ...
const STOCK_LEAST_UNITS: u64 = (1 << 20) / UNIT_BYTES;
/// ... and no more than this.
const STOCK_MOST_UNITS: u64 = (128 << 20) / UNIT_BYTES;

/// What a thread may have in stock for a stream whose arena owns so much.
#[inline]
pub(super) fn stock_limit(owned_units: u64) -> u64 {
    (owned_units / STOCK_PART).clamp(STOCK_LEAST_UNITS, STOCK_MOST_UNITS)
}

impl Heap {
    /// Says that a stream is gone or about to go. What it freed is given to others once its work is done; blocks that
    /// were allocated for it stay valid and can be freed as before.
    pub fn release_stream(&self, stream: StreamKey) {
        let number = self.streams.write().unwrap_or_else(PoisonError::into_inner).remove(&stream);
        let Some(cell) = number.and_then(|number| self.arenas.get(number)) else { return };
        self.empty_all_stocks(|stock| stock.arena == cell.number);
        for shard in self.shards.iter() {
            shard.front.visit().forget(stream.number());
        }
        self.orphans.lock().unwrap_or_else(PoisonError::into_inner).push(cell.number);
    }

    /// The arena of a stream, made if need be.
    #[inline]
    pub(super) fn arena_of(&self, shard: &Shard, stream: StreamKey) -> &ArenaCell {
        let known = shard.with_front(|front| front.stock(stream.number()).map(|stock| stock.arena));
        match known.and_then(|number| self.arenas.get(number)) {
            Some(cell) => cell,
            None => self.find_arena(shard, stream),
        }
    }

    /// Whether the stream of an arena is still there.
    pub(super) fn is_known(&self, cell: &ArenaCell) -> bool {
        let streams = self.streams.read().unwrap_or_else(PoisonError::into_inner);
        streams.get(&cell.stream()) == Some(&cell.number)
    }

    /// Gives a thread's stock of a stream back to its arena; returns how many blocks.
    pub(super) fn empty_stock(&self, shard: &Shard, cell: &ArenaCell) -> usize {
        let stream = cell.stream().number();
        let stocked = shard.with_front(|front| front.stock(stream).map_or(0, |stock| stock.count()));
        if stocked > 0 {
            self.give_stock(shard, cell, &mut cell.lock());
        }
        stocked
    }

    /// The same for an arena that is locked already.
    pub(super) fn give_stock(&self, shard: &Shard, cell: &ArenaCell, books: &mut Books) {
        let stream = cell.stream();
        let now = self.order.latest(stream) as u32;
        loop {
            let batch = shard.with_front(|front| front.stock(stream.number()).map(|stock| stock.drain()));
            let Some(batch) = batch.filter(|batch| !batch.as_slice().is_empty()) else { return };
            books.arena.give_all(batch.as_slice(), now, now);
        }
    }

    /// Limits a thread's stock to a part of what the arena has.
    pub(super) fn limit_stock(&self, shard: &Shard, cell: &ArenaCell, owned_units: u64) {
        let (stream, arena) = (cell.stream().number(), cell.number);
        shard.with_front(|front| front.stock_or_new(stream, arena).set_limit(stock_limit(owned_units)));
    }

    #[cold]
    fn find_arena(&self, shard: &Shard, stream: StreamKey) -> &ArenaCell {
        let known = self.streams.read().unwrap_or_else(PoisonError::into_inner).get(&stream).copied();
        let cell = match known.and_then(|number| self.arenas.get(number)) {
            Some(cell) => cell,
            None => self.new_arena(stream),
        };
        let owned = cell.lock().arena.owned_units();
        self.limit_stock(shard, cell, owned);
        cell
    }

    fn new_arena(&self, stream: StreamKey) -> &ArenaCell {
        let mut streams = self.streams.write().unwrap_or_else(PoisonError::into_inner);
        let number = streams.get(&stream).copied().or_else(|| self.adopt(stream));
        let number = number.unwrap_or_else(|| self.next_arena.fetch_add(1, Ordering::Relaxed));
        streams.insert(stream, number);
        self.arenas.get_or_make(number, || ArenaCell::new(number, stream))
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
