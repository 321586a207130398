//! What is remembered of every byte: its last write, the reads since, and whether it holds anything at all.
//!
//! Neighbouring bytes with the same history share one cell, so a block that is always used as a whole costs one. An
//! access is compared with what the cell remembers: two accesses of which one is a plain write and neither happened
//! before the other are a conflict. Atomic accesses do not conflict with each other. An access that happened before a
//! newer one of the same kind is forgotten, since whatever is ordered after the newer is ordered after it as well.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::check::access_origin::Mark;
use crate::check::undefined_value::{UndefinedPart, UndefinedValue};
use crate::check::vector_clock::VectorClock;

/// How bytes were touched.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Touch {
    Read,
    Write,
    Atomic,
}

/// Two accesses to the same bytes that nothing orders.
#[derive(Debug)]
pub(crate) struct Conflict {
    pub(crate) range: Range<u64>,
    pub(crate) earlier: Arc<Mark>,
    pub(crate) earlier_touch: Touch,
}

/// The history of one piece of memory.
#[derive(Debug)]
pub(crate) struct Shadow {
    cells: BTreeMap<u64, Cell>,
    /// The newest block at each place that was handed out as new: where it ends, and the last submission before. By their starts, without
    /// overlaps.
    blocks: BTreeMap<u64, (u64, u64)>,
    /// Whether bytes that were never touched hold something.
    defined_at_birth: bool,
}

#[derive(Clone, Debug)]
struct Cell {
    end: u64,
    defined: bool,
    /// The undefined bits of each byte, if it is not defined.
    bits: u8,
    /// The undefined value that was stored there, if one was.
    value: Option<Arc<UndefinedValue>>,
    /// The newest submission that gave it contents; 0 for none.
    since: u64,
    write: Option<Arc<Mark>>,
    reads: Vec<Arc<Mark>>,
    atomics: Vec<Arc<Mark>>,
}

impl Shadow {
    pub(crate) fn new(defined_at_birth: bool) -> Self {
        Self { cells: BTreeMap::new(), blocks: BTreeMap::new(), defined_at_birth }
    }

    /// Records an access; conflicts with earlier ones are added to the list.
    pub(crate) fn touch(
        &mut self,
        range: Range<u64>,
        touch: Touch,
        mark: &Arc<Mark>,
        found: &mut Vec<Conflict>,
    ) {
        if range.is_empty() {
            return;
        }
        self.cut(range.start);
        self.cut(range.end);
        self.fill_gaps(range.clone());
        for (start, cell) in self.cells.range(range.clone()) {
            cell.conflicts(*start, touch, mark, found);
        }
        if touch == Touch::Write {
            self.replace(range, mark);
        } else {
            self.cells.range_mut(range.clone()).for_each(|(_, cell)| cell.remember(touch, mark));
            self.merge(range);
        }
    }

    /// The parts of a range that were never written, as a submission with that place in the order sees them: not since the block was handed out
    /// that it means.
    pub(crate) fn undefined(&self, range: Range<u64>, order: u64) -> Vec<UndefinedPart> {
        let mut parts: Vec<UndefinedPart> = Vec::new();
        let mut at = range.start;
        let before = self.blocks.range(..range.start).next_back();
        for (start, (end, born)) in before.into_iter().chain(self.blocks.range(range.clone())) {
            let (start, end) = ((*start).max(range.start), (*end).min(range.end));
            // Earlier work means what lay there before.
            if start < end && *born < order {
                self.undefined_since(at..start, None, &mut parts);
                self.undefined_since(start..end, Some(*born), &mut parts);
                at = end;
            }
        }
        self.undefined_since(at..range.end, None, &mut parts);
        parts
    }

    /// A new block: nothing is known of its bytes, for what is submitted from here on.
    pub(crate) fn begin_block(&mut self, range: Range<u64>, order: u64) {
        let mut cut = |at: u64| {
            if let Some((_, (end, born))) = self.blocks.range_mut(..at).next_back()
                && *end > at
            {
                let rest = (std::mem::replace(end, at), *born);
                self.blocks.insert(at, rest);
            }
        };
        cut(range.start);
        cut(range.end);
        let inside: Vec<u64> = self.blocks.range(range.clone()).map(|(start, _)| *start).collect();
        for start in inside {
            self.blocks.remove(&start);
        }
        self.blocks.insert(range.start, (range.end, order));
    }

    /// Adds the parts of a range that no submission behind a place in the order has written, or that none has.
    fn undefined_since(&self, range: Range<u64>, since: Option<u64>, parts: &mut Vec<UndefinedPart>) {
        let mut add = |part: UndefinedPart| match parts.last_mut() {
            _ if part.bytes.is_empty() => {}
            Some(last) if last.bytes.end == part.bytes.start && last.has_same_value(&part) => {
                last.bytes.end = part.bytes.end;
            }
            _ => parts.push(part),
        };
        let bare = |bytes: Range<u64>| UndefinedPart { bytes, bits: 0xff, value: None };
        let is_bare = !self.defined_at_birth || since.is_some();
        let mut at = range.start;
        for (start, cell) in self.overlapping(range.clone()) {
            let (start, end) = (start.max(range.start), cell.end.min(range.end));
            if is_bare {
                add(bare(at..start));
            }
            if since.is_some_and(|since| cell.since <= since) {
                add(bare(start..end));
            } else if !cell.defined {
                add(UndefinedPart { bytes: start..end, bits: cell.bits, value: cell.value.clone() });
            }
            at = end;
        }
        if is_bare {
            add(bare(at..range.end));
        }
    }

    /// Forgets that a range was written, after bytes without contents were stored to it.
    pub(crate) fn undefine(&mut self, part: &UndefinedPart) {
        let range = part.bytes.clone();
        if range.is_empty() {
            return;
        }
        self.cut(range.start);
        self.cut(range.end);
        if self.defined_at_birth {
            self.fill_gaps(range.clone());
        }
        for (_, cell) in self.cells.range_mut(range.clone()) {
            (cell.defined, cell.bits) = (false, part.bits);
            cell.value = part.value.clone();
        }
        self.merge(range);
    }

    /// The undefined value that a kernel stored to a place.
    pub(crate) fn value_at(&self, at: u64) -> Option<Arc<UndefinedValue>> {
        let (_, cell) = self.overlapping(at..at + 1).next()?;
        cell.value.clone().filter(|_| !cell.defined)
    }

    /// The first access in a range that a clock does not have behind it.
    pub(crate) fn first_unknown(
        &self,
        range: Range<u64>,
        clock: &VectorClock,
    ) -> Option<(Range<u64>, Arc<Mark>, Touch)> {
        self.overlapping(range.clone()).find_map(|(start, cell)| {
            let (mark, touch) = cell.marks().find(|(mark, _)| !mark.is_known_to(clock))?;
            Some((start.max(range.start)..cell.end.min(range.end), mark.clone(), touch))
        })
    }

    /// What last wrote bytes of a range, or changed them atomically.
    pub(crate) fn writers(&self, range: Range<u64>) -> Vec<Arc<Mark>> {
        let of = |cell: &Cell| cell.write.iter().chain(&cell.atomics).cloned().collect::<Vec<_>>();
        self.overlapping(range).flat_map(|(_, cell)| of(cell)).collect()
    }

    /// All bytes hold something from here on: others write them, too.
    pub(crate) fn define_all(&mut self) {
        self.defined_at_birth = true;
        self.blocks.clear();
        self.cells.values_mut().for_each(|cell| (cell.defined, cell.value) = (true, None));
    }

    fn overlapping(&self, range: Range<u64>) -> impl Iterator<Item = (u64, &Cell)> {
        let before = self.cells.range(..range.start).next_back().filter(|(_, cell)| cell.end > range.start);
        before.into_iter().chain(self.cells.range(range)).map(|(start, cell)| (*start, cell))
    }

    /// Makes a cell that reaches across a place into two.
    fn cut(&mut self, at: u64) {
        let Some((_, cell)) = self.cells.range_mut(..at).next_back() else { return };
        if cell.end > at {
            let rest = cell.clone();
            cell.end = at;
            self.cells.insert(at, rest);
        }
    }

    fn fill_gaps(&mut self, range: Range<u64>) {
        let mut gaps = Vec::new();
        let mut at = range.start;
        for (start, cell) in self.cells.range(range.clone()) {
            if at < *start {
                gaps.push(at..*start);
            }
            at = cell.end;
        }
        if at < range.end {
            gaps.push(at..range.end);
        }
        let defined = self.defined_at_birth;
        self.cells.extend(gaps.into_iter().map(|gap| (gap.start, Cell::untouched(gap.end, defined))));
    }

    /// One cell for a range that was written as a whole; what was remembered of it is settled by that.
    fn replace(&mut self, range: Range<u64>, mark: &Arc<Mark>) {
        let starts: Vec<u64> = self.cells.range(range.clone()).map(|(start, _)| *start).collect();
        for start in starts {
            self.cells.remove(&start);
        }
        let cell = Cell { write: Some(mark.clone()), since: mark.order, ..Cell::untouched(range.end, true) };
        self.cells.insert(range.start, cell);
        self.merge(range);
    }

    /// Joins neighbours with one history, at the edges of a range and inside it.
    fn merge(&mut self, range: Range<u64>) {
        let before = self.cells.range(..range.start).next_back().map_or(range.start, |(start, _)| *start);
        let mut current = before;
        while current < range.end
            && let Some((next, cell)) = self.cells.range(current + 1..=range.end).next()
        {
            let (next, end) = (*next, cell.end);
            let same = self.cells.get(&current).is_some_and(|left| left.end == next && left.is_like(cell));
            if same {
                self.cells.remove(&next);
                if let Some(left) = self.cells.get_mut(&current) {
                    left.end = end;
                }
            } else {
                current = next;
            }
        }
    }
}

impl Cell {
    fn untouched(end: u64, defined: bool) -> Self {
        Self {
            end,
            defined,
            bits: 0xff,
            value: None,
            since: 0,
            write: None,
            reads: Vec::new(),
            atomics: Vec::new(),
        }
    }

    fn marks(&self) -> impl Iterator<Item = (&Arc<Mark>, Touch)> {
        let writes = self.write.iter().map(|mark| (mark, Touch::Write));
        let reads = self.reads.iter().map(|mark| (mark, Touch::Read));
        writes.chain(reads).chain(self.atomics.iter().map(|mark| (mark, Touch::Atomic)))
    }

    fn conflicts(&self, start: u64, touch: Touch, mark: &Arc<Mark>, found: &mut Vec<Conflict>) {
        for (earlier, earlier_touch) in self.marks() {
            let excluded =
                matches!((earlier_touch, touch), (Touch::Read, Touch::Read) | (Touch::Atomic, Touch::Atomic));
            if excluded || earlier.is_before(mark) {
                continue;
            }
            let range = start..self.end;
            match found.last_mut() {
                Some(last)
                    if Arc::ptr_eq(&last.earlier, earlier)
                        && last.earlier_touch == earlier_touch
                        && last.range.end == start =>
                {
                    last.range.end = self.end;
                }
                _ => found.push(Conflict { range, earlier: earlier.clone(), earlier_touch }),
            }
        }
    }

    fn remember(&mut self, touch: Touch, mark: &Arc<Mark>) {
        let list = if touch == Touch::Atomic { &mut self.atomics } else { &mut self.reads };
        list.retain(|older| !older.is_before(mark));
        list.push(mark.clone());
        if touch == Touch::Atomic {
            (self.defined, self.since) = (true, self.since.max(mark.order));
            self.value = None;
        }
    }

    fn is_like(&self, other: &Self) -> bool {
        let same = |a: &[Arc<Mark>], b: &[Arc<Mark>]| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| Arc::ptr_eq(a, b))
        };
        let same_value = self.value.as_ref().map(Arc::as_ptr) == other.value.as_ref().map(Arc::as_ptr);
        same_value
            && (self.defined || self.bits == other.bits)
            && (self.defined, self.since) == (other.defined, other.since)
            && same(self.write.as_slice(), other.write.as_slice())
            && same(&self.reads, &other.reads)
            && same(&self.atomics, &other.atomics)
    }
}

#[cfg(test)]
// Lists of ranges with one range in them are meant.
#[allow(clippy::single_range_in_vec_init)]
mod tests {
    use super::*;
    use crate::check::access_origin::{Action, Actor};
    use crate::check::vector_clock::{Lane, Lanes};

    fn mark(lane: Lane, tick: u64, knows: &[(Lane, u64)]) -> Arc<Mark> {
        let mut clock = VectorClock::default();
        knows.iter().for_each(|(lane, tick)| clock.set(*lane, *tick));
        clock.set(lane, tick);
        let actor = Actor::host(0, Action::Copy);
        Arc::new(Mark { lane, tick, end: None, clock: Arc::new(clock), order: tick, actor })
    }

    fn undefined(shadow: &Shadow, range: Range<u64>, order: u64) -> Vec<Range<u64>> {
        shadow.undefined(range, order).into_iter().map(|part| part.bytes).collect()
    }

    fn two_lanes() -> (Lane, Lane) {
        let mut lanes = Lanes::new();
        (lanes.take(&VectorClock::default()), lanes.take(&VectorClock::default()))
    }

    fn found(shadow: &mut Shadow, range: Range<u64>, touch: Touch, mark: &Arc<Mark>) -> Vec<Range<u64>> {
        let mut conflicts = Vec::new();
        shadow.touch(range, touch, mark, &mut conflicts);
        conflicts.into_iter().map(|conflict| conflict.range).collect()
    }

    #[test]
    fn only_unordered_pairs_with_a_write_conflict() {
        let (a, b) = two_lanes();
        let mut shadow = Shadow::new(false);
        assert!(found(&mut shadow, 0..100, Touch::Write, &mark(a, 1, &[])).is_empty());
        assert_eq!(found(&mut shadow, 50..150, Touch::Read, &mark(b, 1, &[])), [50..100]);
        assert!(found(&mut shadow, 0..50, Touch::Read, &mark(b, 2, &[(a, 1)])).is_empty());
        assert!(found(&mut shadow, 100..150, Touch::Read, &mark(a, 2, &[])).is_empty());
        assert_eq!(found(&mut shadow, 0..150, Touch::Write, &mark(a, 3, &[])), [0..50, 50..150]);
        assert!(found(&mut shadow, 0..150, Touch::Write, &mark(a, 4, &[])).is_empty());
    }

    #[test]
    fn atomics_conflict_with_plain_accesses_only() {
        let (a, b) = two_lanes();
        let mut shadow = Shadow::new(true);
        assert!(found(&mut shadow, 0..8, Touch::Atomic, &mark(a, 1, &[])).is_empty());
        assert!(found(&mut shadow, 0..8, Touch::Atomic, &mark(b, 1, &[])).is_empty());
        assert_eq!(found(&mut shadow, 0..4, Touch::Read, &mark(b, 2, &[])), [0..4]);
        assert_eq!(found(&mut shadow, 4..8, Touch::Write, &mark(b, 3, &[])), [4..8]);
    }

    #[test]
    fn undefined_bytes_are_exactly_those_that_were_not_written() {
        let (a, _) = two_lanes();
        let mut shadow = Shadow::new(false);
        assert_eq!(undefined(&shadow, 0..10, u64::MAX), [0..10]);
        found(&mut shadow, 2..4, Touch::Write, &mark(a, 1, &[]));
        found(&mut shadow, 4..6, Touch::Read, &mark(a, 2, &[]));
        assert_eq!(undefined(&shadow, 0..10, u64::MAX), [0..2, 4..10]);
        found(&mut shadow, 0..10, Touch::Write, &mark(a, 3, &[]));
        assert!(undefined(&shadow, 0..10, u64::MAX).is_empty());
        shadow.undefine(&UndefinedPart { bytes: 3..5, bits: 0xff, value: None });
        assert_eq!(undefined(&shadow, 0..10, u64::MAX), [3..5]);
        assert!(undefined(&Shadow::new(true), 0..10, u64::MAX).is_empty());
    }

    #[test]
    fn a_block_used_as_a_whole_stays_one_cell() {
        let (a, _) = two_lanes();
        let mut shadow = Shadow::new(false);
        for tick in 1..100 {
            let mark = mark(a, tick, &[]);
            for part in 0..10 {
                found(&mut shadow, part * 10..part * 10 + 10, Touch::Write, &mark);
            }
            found(&mut shadow, 0..100, Touch::Read, &mark);
        }
        assert_eq!(shadow.cells.len(), 1);
    }

    #[test]
    fn the_first_access_a_clock_does_not_know_is_found() {
        let (a, b) = two_lanes();
        let mut shadow = Shadow::new(false);
        found(&mut shadow, 0..10, Touch::Write, &mark(a, 1, &[]));
        found(&mut shadow, 20..30, Touch::Read, &mark(b, 7, &[]));
        let mut clock = VectorClock::default();
        clock.set(a, 1);
        let (range, _, touch) = shadow.first_unknown(0..25, &clock).unwrap();
        assert_eq!((range, touch), (20..25, Touch::Read));
        clock.set(b, 7);
        assert!(shadow.first_unknown(0..100, &clock).is_none());
    }

    #[test]
    fn a_block_is_bare_for_what_is_submitted_after_it_was_handed_out() {
        let (a, b) = two_lanes();
        let mut shadow = Shadow::new(true);
        found(&mut shadow, 0..100, Touch::Write, &mark(a, 3, &[]));
        shadow.begin_block(20..60, 5);
        assert!(undefined(&shadow, 0..100, 5).is_empty(), "work from before");
        assert_eq!(undefined(&shadow, 0..100, 6), [20..60]);
        // A write that was submitted after the block began gives it contents, whenever it runs.
        found(&mut shadow, 20..30, Touch::Write, &mark(b, 7, &[(a, 3)]));
        found(&mut shadow, 50..55, Touch::Atomic, &mark(b, 8, &[(a, 3)]));
        assert_eq!(undefined(&shadow, 0..100, 9), [30..50, 55..60]);
        shadow.begin_block(40..200, 9);
        assert_eq!(undefined(&shadow, 0..150, 10), [30..150], "also where no byte was ever touched");
        shadow.begin_block(0..45, 12);
        assert_eq!(undefined(&shadow, 0..150, 13), [0..150]);
        assert_eq!(undefined(&shadow, 45..150, 10), [45..150]);
        assert_eq!(shadow.blocks.len(), 2);
    }
}
