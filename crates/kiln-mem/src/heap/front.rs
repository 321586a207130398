//! A thread's own stock of freed blocks, by stream and size class.
//!
//! The commonest allocation is one of a size that was freed a moment ago on the same stream by the same thread. Such a
//! block is popped from a list here, without a lock and without touching the arena, for which it has been taken all
//! along. The stock is limited in bytes, to a small part of what the arena owns, so that what lies here unjoined
//! cannot fragment the heap; what is over the limit goes back in batches.

use super::arena::Taken;
use super::size_class::{CLASSES, class_units};

/// No entry.
const NONE: u16 = u16::MAX;
/// Entries of a stock, over all classes.
const ENTRIES: usize = 512;
/// How many blocks go back at once.
pub(crate) const BATCH: usize = 32;
/// Streams that are found at once; others are searched for.
const WAYS: usize = 16;

/// The stocks of one thread.
#[derive(Debug)]
pub(crate) struct Front {
    stocks: Vec<Stock>,
    /// Stream and index of the stock last used with a stream of this remainder.
    recent: [(u32, u32); WAYS],
}

/// Freed blocks of one stream.
#[derive(Debug)]
pub(crate) struct Stock {
    stream: u32,
    pub(crate) arena: u32,
    heads: [u16; CLASSES],
    entries: Vec<Entry>,
    vacant: u16,
    units: u64,
    limit_units: u64,
    /// The class that the next batch begins with.
    hand: usize,
    count: usize,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    start: u64,
    piece: u32,
    next: u16,
}

/// Blocks on their way back to an arena.
#[derive(Debug)]
pub(crate) struct Batch {
    blocks: [Taken; BATCH],
    len: usize,
}

impl Front {
    /// No stocks yet.
    pub(crate) fn new() -> Self {
        Self { stocks: Vec::new(), recent: [(u32::MAX, 0); WAYS] }
    }

    /// The stock of a stream, if there is one.
    #[inline]
    pub(crate) fn stock(&mut self, stream: u32) -> Option<&mut Stock> {
        let (known, at) = self.recent[stream as usize % WAYS];
        if known == stream {
            return self.stocks.get_mut(at as usize);
        }
        self.search(stream)
    }

    /// The stock of a stream, made if need be.
    pub(crate) fn stock_or_new(&mut self, stream: u32, arena: u32) -> &mut Stock {
        let at = self.stocks.iter().position(|stock| stock.stream == stream).unwrap_or_else(|| {
            self.stocks.push(Stock::new(stream, arena));
            self.stocks.len() - 1
        });
        self.recent[stream as usize % WAYS] = (stream, at as u32);
        &mut self.stocks[at]
    }

    /// All stocks.
    pub(crate) fn stocks(&mut self) -> &mut [Stock] {
        &mut self.stocks
    }

    /// Forgets the stock of a stream that is gone; it is empty.
    pub(crate) fn forget(&mut self, stream: u32) {
        self.stocks.retain(|stock| stock.stream != stream || stock.count > 0);
        self.recent = [(u32::MAX, 0); WAYS];
    }

    #[cold]
    fn search(&mut self, stream: u32) -> Option<&mut Stock> {
        let at = self.stocks.iter().position(|stock| stock.stream == stream)?;
        self.recent[stream as usize % WAYS] = (stream, at as u32);
        self.stocks.get_mut(at)
    }
}

impl Stock {
    fn new(stream: u32, arena: u32) -> Self {
        let entries =
            (0..ENTRIES as u16).map(|at| Entry { start: 0, piece: 0, next: at + 1 }).collect::<Vec<_>>();
        let mut stock = Self {
            stream,
            arena,
            heads: [NONE; CLASSES],
            entries,
            vacant: 0,
            units: 0,
            limit_units: 0,
            hand: 0,
            count: 0,
        };
        if let Some(last) = stock.entries.last_mut() {
            last.next = NONE;
        }
        stock
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
    #[inline]
    pub(crate) fn pop(&mut self, class: usize) -> Option<Taken> {
        let at = self.heads[class];
        let entry = self.entries.get_mut(usize::from(at))?;
        let taken = Taken { piece: entry.piece, start: entry.start };
        self.heads[class] = std::mem::replace(&mut entry.next, self.vacant);
        self.vacant = at;
        self.units -= u64::from(class_units(class));
        self.count -= 1;
        Some(taken)
    }

    /// Puts a block of a class, with its units, in. `false`, and it is not put in, if there is no entry for it.
    #[inline]
    pub(crate) fn push(&mut self, class: usize, units: u32, taken: Taken) -> bool {
        let at = self.vacant;
        let Some(entry) = self.entries.get_mut(usize::from(at)) else { return false };
        self.vacant = entry.next;
        *entry = Entry { start: taken.start, piece: taken.piece, next: self.heads[class] };
        self.heads[class] = at;
        self.units += u64::from(units);
        self.count += 1;
        true
    }

    /// Whether more lies here than should, or no further block would find an entry.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.units > self.limit_units || self.vacant == NONE
    }

    /// Takes blocks out, one of each class in turn, until half of the limit is left and there are vacant entries again, or
    /// the batch is full.
    pub(crate) fn shrink(&mut self) -> Batch {
        self.take_out(1, |stock| stock.units > stock.limit_units / 2 || stock.count > ENTRIES - BATCH)
    }

    /// Takes blocks out, class after class, until none is left or the batch is full.
    pub(crate) fn drain(&mut self) -> Batch {
        self.take_out(0, |_| true)
    }

    /// Takes blocks out for as long as it is wanted; after each one the hand goes on by so many classes.
    #[inline]
    fn take_out(&mut self, stride: usize, goes_on: impl Fn(&Self) -> bool) -> Batch {
        let mut batch = Batch { blocks: [Taken { piece: 0, start: 0 }; BATCH], len: 0 };
        while batch.len < BATCH && goes_on(self) {
            let Some(class) = self.next_class() else { break };
            let Some(taken) = self.pop(class) else { break };
            batch.blocks[batch.len] = taken;
            batch.len += 1;
            self.hand = (class + stride) % CLASSES;
        }
        batch
    }

    /// The first class at or after the hand that has a block.
    fn next_class(&self) -> Option<usize> {
        let first = |classes: &[u16]| classes.iter().position(|head| *head != NONE);
        let (before, after) = self.heads.split_at(self.hand);
        first(after).map(|class| self.hand + class).or_else(|| first(before))
    }
}

impl Batch {
    pub(crate) fn as_slice(&self) -> &[Taken] {
        &self.blocks[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::size_class::class_of;

    #[test]
    fn what_was_freed_last_comes_first_and_only_for_its_class_and_stream() {
        let mut front = Front::new();
        assert!(front.stock(7).is_none());
        let stock = front.stock_or_new(7, 0);
        stock.set_limit(1 << 20);
        for piece in 0..3 {
            assert!(stock.push(
                class_of(100),
                class_units(class_of(100)),
                Taken { piece, start: u64::from(piece) * 1000 }
            ));
        }
        assert!(front.stock(7 + WAYS as u32).is_none());
        let stock = front.stock(7).unwrap();
        assert_eq!(stock.pop(class_of(50)), None);
        assert_eq!(stock.pop(class_of(100)), Some(Taken { piece: 2, start: 2000 }));
        assert_eq!((stock.count(), stock.units()), (2, 2 * u64::from(class_units(class_of(100)))));
    }

    #[test]
    fn a_stock_over_its_limit_shrinks_to_half_and_drains_to_nothing() {
        let mut front = Front::new();
        let stock = front.stock_or_new(1, 0);
        stock.set_limit(100);
        for piece in 0..120 {
            assert!(stock.push(piece as usize % 5, piece % 5 + 1, Taken { piece, start: 0 }));
        }
        assert!(stock.is_over());
        let mut seen = Vec::new();
        while stock.is_over() {
            seen.extend(stock.shrink().as_slice().iter().map(|taken| taken.piece));
        }
        assert!(stock.units() <= 100 && stock.units() > 40, "{}", stock.units());
        while stock.count() > 0 {
            seen.extend(stock.drain().as_slice().iter().map(|taken| taken.piece));
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..120).collect::<Vec<_>>());
        assert_eq!(stock.units(), 0);
    }

    #[test]
    fn a_stock_shrinks_by_one_block_of_each_class_in_turn() {
        let mut front = Front::new();
        let stock = front.stock_or_new(1, 0);
        for class in [3, 3, 3, 3, 9, 170] {
            assert!(stock.push(class, class_units(class), Taken { piece: class as u32, start: 0 }));
        }
        stock.set_limit(stock.units() - 1);
        let gone = stock.shrink();
        assert_eq!(gone.as_slice().iter().map(|taken| taken.piece).collect::<Vec<_>>(), [3, 9, 170]);
        assert_eq!(stock.drain().as_slice().len(), 3);
    }

    #[test]
    fn a_full_stock_takes_no_more() {
        let mut front = Front::new();
        let stock = front.stock_or_new(1, 0);
        for piece in 0..ENTRIES as u32 {
            assert!(stock.push(0, 1, Taken { piece, start: 0 }));
        }
        assert!(!stock.push(0, 1, Taken { piece: 0, start: 0 }));
        // However small the blocks are, a full stock makes room again.
        stock.set_limit(1 << 20);
        assert!(stock.is_over());
        assert_eq!(stock.shrink().as_slice().len(), BATCH);
        assert!(!stock.is_over() && stock.push(0, 1, Taken { piece: 0, start: 0 }));
    }
}
