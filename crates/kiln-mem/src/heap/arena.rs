//! The memory of one stream: pieces of address space, and which of them are free.
//!
//! Everything here is arithmetic on the host; no device and no lock is known. Addresses are counted in units. The
//! invariants: neighbours that are both free are one piece; a free piece is in exactly one list; a piece whose neighbour
//! is `NIL` has nothing of this arena beside it.
//!
//! Each free piece records when it was last used, as the low half of a submission number of the arena's stream. The upper half is
//! recovered from the newest number when the piece is looked at. A piece that was not used for more than 2^32 submissions then looks newer
//! than it is, which is safe.

use super::address_ranges::{NIL, Piece, PieceTable};
use super::free_lists::FreeLists;
use crate::try_reserve::HostOutOfMemory;

/// Pieces of address space, in address order.
#[derive(Debug)]
pub(crate) struct Arena {
    pub(super) pieces: PieceTable,
    pub(super) free_lists: FreeLists,
    /// The piece at the end of the region, to be joined with what is mapped after it.
    pub(super) tail: u32,
    pub(super) owned_units: u64,
    used_units: u64,
    taken: usize,
}

/// A piece that was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TakenPiece {
    pub(crate) piece: u32,
    pub(crate) start: u64,
}

/// Where new addresses are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Placement {
    /// At the end of the arena's region, where more will follow.
    RegionEnd,
    /// Somewhere else.
    Elsewhere,
}

impl Arena {
    pub(crate) fn new() -> Self {
        Self {
            pieces: PieceTable::new(),
            free_lists: FreeLists::new(),
            tail: NIL,
            owned_units: 0,
            used_units: 0,
            taken: 0,
        }
    }

    pub(crate) fn owned_units(&self) -> u64 {
        self.owned_units
    }

    pub(crate) fn used_units(&self) -> u64 {
        self.used_units
    }

    /// How many pieces are taken.
    pub(crate) fn taken(&self) -> usize {
        self.taken
    }

    pub(crate) fn largest_free_units(&self) -> u32 {
        self.free_lists.largest(self.pieces.as_slice())
    }

    /// Free units at the end of the region, which what is mapped next will continue.
    pub(crate) fn tail_units(&self) -> u32 {
        let tail = &self.pieces[self.tail];
        if tail.is_free() { tail.units } else { 0 }
    }

    /// Adds free addresses with memory behind them; returns their piece.
    pub(crate) fn extend(&mut self, start: u64, units: u32, edge: Placement, stamp: u32, now: u32) -> u32 {
        let at = self.pieces.add(start, units);
        self.owned_units += u64::from(units);
        if edge == Placement::RegionEnd {
            if self.tail != NIL && self.pieces[self.tail].end() == start {
                self.pieces[self.tail].after = at;
                self.pieces[at].before = self.tail;
            }
            self.tail = at;
        }
        self.release(at, stamp, now)
    }

    /// Makes room in the table for so many new pieces.
    pub(crate) fn try_grow(&mut self, count: usize) -> Result<(), HostOutOfMemory> {
        self.pieces.try_grow(count)
    }

    /// Whether the table has an entry for the rest of a piece that is cut; [`try_grow`](Self::try_grow) makes more.
    #[inline]
    pub(crate) fn can_cut(&self) -> bool {
        self.pieces.has_entry()
    }

    /// Takes `units` from a piece that has as many; none also if the table has no entry for the rest of the piece.
    #[inline]
    pub(crate) fn take(&mut self, units: u32) -> Option<TakenPiece> {
        if !self.pieces.has_entry() {
            return None;
        }
        let at = self.free_lists.find(self.pieces.as_slice(), units)?;
        Some(self.take_from(at, units))
    }

    /// Takes so many units from the front of a free piece that holds them.
    #[inline]
    pub(crate) fn take_from(&mut self, at: u32, units: u32) -> TakenPiece {
        let piece = self.pieces[at];
        let rest = if piece.units > units { self.pieces.reserve() } else { NIL };
        let table = self.pieces.table();
        self.free_lists.remove(table, at);
        table[at as usize].set_free(false);
        if rest != NIL {
            table[at as usize].units = units;
            cut(table, at, &piece, rest);
            if self.tail == at {
                self.tail = rest;
            }
            self.free_lists.add(table, rest);
        }
        self.used_units += u64::from(units);
        self.taken += 1;
        TakenPiece { piece: at, start: piece.start() }
    }

    /// Takes so many units from a piece that is large enough and was last used at a stamp the caller accepts.
    pub(crate) fn take_ready(
        &mut self,
        units: u32,
        mut ready: impl FnMut(u32) -> bool,
    ) -> Option<TakenPiece> {
        const TRIED_PIECES: usize = 64;
        let pieces = &self.pieces;
        let fitting = self.free_lists.from(pieces.as_slice(), units).filter(|at| pieces[*at].units >= units);
        let found = fitting.take(TRIED_PIECES).find(|at| ready(pieces[*at].stamp));
        found.map(|at| self.take_from(at, units))
    }

    /// Takes so many units that start at a multiple of `align`, counted with `phase` added to each address.
    pub(crate) fn take_aligned(&mut self, units: u32, align: u64, phase: u64) -> Option<TakenPiece> {
        let padded = u32::try_from(u64::from(units).checked_add(align - 1)?).ok()?;
        let at = self.free_lists.find(self.pieces.as_slice(), padded)?;
        let piece = self.pieces[at];
        let lead = (piece.start() + phase).next_multiple_of(align) - (piece.start() + phase);
        if lead == 0 {
            return Some(self.take_from(at, units));
        }
        let rest = self.pieces.reserve();
        let table = self.pieces.table();
        self.free_lists.remove(table, at);
        table[at as usize].units = lead as u32;
        table[at as usize].set_free(true);
        cut(table, at, &piece, rest);
        if self.tail == at {
            self.tail = rest;
        }
        self.free_lists.add(table, at);
        self.free_lists.add(table, rest);
        Some(self.take_from(rest, units))
    }

    /// The free piece with exactly these addresses, looked for first where it may be; none too if it is deep in its list.
    #[inline]
    pub(crate) fn find_free(&self, maybe: u32, start: u64, units: u32) -> Option<u32> {
        match self.pieces.free_at(maybe, start) {
            Some(piece) if piece.units == units => Some(maybe),
            _ => self.free_lists.find_exact(self.pieces.as_slice(), start, units),
        }
    }

    /// Whether a piece is taken.
    pub(crate) fn is_taken(&self, taken: TakenPiece) -> bool {
        self.pieces.taken_at(taken.piece, taken.start).is_some()
    }

    /// Makes all pieces look as if nothing had used them; their stream is gone and done.
    pub(crate) fn forget_stamps(&mut self) {
        self.pieces.table().iter_mut().for_each(|piece| piece.stamp = 0);
    }

    /// Makes a taken piece free. `false`, and nothing is changed, if there is no such piece.
    #[inline]
    pub(crate) fn give(&mut self, taken: TakenPiece, stamp: u32, now: u32) -> bool {
        let Some(piece) = self.pieces.taken_at(taken.piece, taken.start) else { return false };
        self.used_units -= u64::from(piece.units);
        self.taken -= 1;
        self.release(taken.piece, stamp, now);
        true
    }

    /// Makes taken pieces free. Freeing touches each piece and its neighbours, scattered over a table that does not fit
    /// the nearest cache; touching all of them first lets the processor fetch them side by side.
    pub(crate) fn give_all(&mut self, taken: &[TakenPiece], stamp: u32, now: u32) {
        let table = self.pieces.as_slice();
        let mut touched = 0;
        for TakenPiece { piece, .. } in taken {
            if let Some(piece) = table.get(*piece as usize) {
                let beside = (&table[piece.before as usize], &table[piece.after as usize]);
                touched ^= beside.0.units ^ beside.1.units;
            }
        }
        std::hint::black_box(touched);
        for taken in taken {
            self.give(*taken, stamp, now);
        }
    }

    /// Removes all pieces; nothing is taken any more.
    pub(crate) fn clear(&mut self) {
        self.pieces.clear();
        self.free_lists = FreeLists::new();
        self.tail = NIL;
        (self.owned_units, self.used_units, self.taken) = (0, 0, 0);
    }

    /// Removes exactly these addresses, if they are one free piece that is ready.
    pub(crate) fn remove_extent(&mut self, start: u64, units: u64, ready: impl Fn(u32) -> bool) -> bool {
        let pieces = &self.pieces;
        let fits = |at: &u32| {
            let piece = &pieces[*at];
            piece.start() == start && u64::from(piece.units) == units && ready(piece.stamp)
        };
        let Some(at) = u32::try_from(units)
            .ok()
            .and_then(|units| self.free_lists.from(pieces.as_slice(), units).find(fits))
        else {
            return false;
        };
        self.free_lists.remove(self.pieces.table(), at);
        self.pieces.drop(at);
        self.owned_units -= units;
        true
    }

    /// Joins a piece that is in no list with its free neighbours and puts it into the list of its size; returns it.
    #[inline]
    pub(super) fn release(&mut self, at: u32, stamp: u32, now: u32) -> u32 {
        let table = self.pieces.table();
        let (mut first, mut stamp) = (at, stamp);
        let Piece { before, after, mut units, .. } = table[at as usize];
        let beside = table[before as usize];
        let mut absorbed = [NIL; 2];
        if beside.is_free()
            && let Some(sum) = units.checked_add(beside.units)
        {
            self.free_lists.remove(table, before);
            (first, units, stamp) = (before, sum, later(stamp, beside.stamp, now));
            absorbed[0] = at;
        }
        let mut next = after;
        let beside = table[after as usize];
        if beside.is_free()
            && let Some(sum) = units.checked_add(beside.units)
        {
            self.free_lists.remove(table, after);
            (next, units, stamp) = (beside.after, sum, later(stamp, beside.stamp, now));
            absorbed[1] = after;
        }
        let piece = &mut table[first as usize];
        (piece.units, piece.stamp, piece.after) = (units, stamp, next);
        piece.set_free(true);
        table[next as usize].before = first;
        self.free_lists.add(table, first);
        for gone in absorbed {
            if gone != NIL {
                if self.tail == gone {
                    self.tail = first;
                }
                self.pieces.drop(gone);
            }
        }
        first
    }

    /// Puts a piece, which has no free neighbour, into the list of its size.
    pub(super) fn make_free(&mut self, at: u32, stamp: u32) {
        let table = self.pieces.table();
        table[at as usize].stamp = stamp;
        table[at as usize].set_free(true);
        self.free_lists.add(table, at);
    }
}

/// Writes the rest of a piece that was shortened, as a free piece in no list.
#[inline]
fn cut(table: &mut [Piece], at: u32, whole: &Piece, rest: u32) {
    let units = table[at as usize].units;
    let mut piece = Piece::taken(whole.start() + u64::from(units), whole.units - units);
    piece.set_free(true);
    (piece.stamp, piece.before, piece.after) = (whole.stamp, at, whole.after);
    table[rest as usize] = piece;
    table[whole.after as usize].before = rest;
    table[at as usize].after = rest;
}

/// The later of two stamps, both at or before `now`.
#[inline]
pub(crate) fn later(one: u32, other: u32, now: u32) -> u32 {
    if now.wrapping_sub(one) <= now.wrapping_sub(other) { one } else { other }
}

/// The submission number behind a stamp: the latest one at or before `now` with this low half.
pub(crate) fn number_of(stamp: u32, now: u64) -> u64 {
    now.saturating_sub(u64::from((now as u32).wrapping_sub(stamp)))
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;

    use super::super::physical_page_selection::PAGE_UNITS;
    use super::*;

    pub(crate) fn with_pages(pages: u32) -> Arena {
        let mut arena = Arena::new();
        arena.try_grow(1024).unwrap();
        arena.extend(0, pages * PAGE_UNITS as u32, Placement::RegionEnd, 0, 0);
        arena
    }

    /// Free stretches in address order, after checking the invariants.
    pub(crate) fn free_stretches(arena: &Arena) -> Vec<(u64, u64)> {
        let mut free: Vec<(u64, u64)> = Vec::new();
        let Arena { pieces, free_lists, .. } = arena;
        let table = pieces.as_slice();
        for at in free_lists.from(table, 1) {
            let piece = &table[at as usize];
            assert!(piece.is_free());
            for (neighbour, back) in [(piece.before, 1), (piece.after, -1)] {
                if neighbour != NIL {
                    let other = &table[neighbour as usize];
                    assert!(!other.is_free(), "two free neighbours");
                    assert_eq!(if back == 1 { other.after } else { other.before }, at);
                }
            }
            free.push((piece.start(), piece.end()));
        }
        free.sort_unstable();
        assert!(free.is_sorted_by(|one, other| one.1 <= other.0));
        let free_units: u64 = free.iter().map(|(start, end)| end - start).sum();
        assert_eq!(free_units, arena.owned_units - arena.used_units);
        free
    }

    #[test]
    fn random_takes_and_gives_agree_with_a_naive_map() {
        let seeds = if cfg!(miri) { 1 } else { 40 };
        for seed in 0..seeds {
            let mut random = crate::heap::lcg(seed);
            let mut arena = with_pages(8);
            let mut live: Vec<(TakenPiece, u32)> = Vec::new();
            let mut map: BTreeMap<u64, u64> = BTreeMap::new();
            for _ in 0..600 {
                if random() % 5 < 3 {
                    let units = (random() % (1 << (random() % 16 + 1))) as u32 + 1;
                    let align = 1 << (random() % 12);
                    let taken = if random().is_multiple_of(4) {
                        arena.take_aligned(units, align, 3)
                    } else {
                        arena.take(units)
                    };
                    let Some(taken) = taken else { continue };
                    let end = taken.start + u64::from(units);
                    let below = map.range(..end).next_back().map_or(0, |(_, end)| *end);
                    assert!(below <= taken.start && end <= 8 * PAGE_UNITS, "seed {seed}");
                    map.insert(taken.start, end);
                    live.push((taken, units));
                } else if !live.is_empty() {
                    let (taken, _) = live.swap_remove(random() as usize % live.len());
                    assert!(arena.give(taken, 0, 0));
                    assert!(!arena.give(taken, 0, 0), "freed twice");
                    map.remove(&taken.start);
                }
                assert_eq!(arena.taken(), live.len());
            }
            free_stretches(&arena);
            live.into_iter().for_each(|(taken, _)| assert!(arena.give(taken, 0, 0)));
            assert_eq!(free_stretches(&arena), [(0, 8 * PAGE_UNITS)]);
        }
    }

    #[test]
    fn an_aligned_piece_starts_where_it_should() {
        let mut arena = with_pages(4);
        let odd = arena.take(3).unwrap();
        let aligned = arena.take_aligned(10, 1024, 5).unwrap();
        assert_eq!((aligned.start + 5) % 1024, 0);
        assert_eq!(free_stretches(&arena).len(), 2);
        assert!(arena.give(odd, 0, 0) && arena.give(aligned, 0, 0));
        assert_eq!(free_stretches(&arena).len(), 1);
    }

    #[test]
    fn what_is_mapped_behind_the_lane_is_joined_with_its_end() {
        let mut arena = with_pages(1);
        let most = arena.take(8000).unwrap();
        assert_eq!(arena.tail_units(), 192);
        arena.extend(PAGE_UNITS, PAGE_UNITS as u32, Placement::RegionEnd, 0, 0);
        assert_eq!(arena.largest_free_units(), 192 + PAGE_UNITS as u32);
        assert!(arena.give(most, 0, 0));
        assert_eq!(arena.largest_free_units(), 2 * PAGE_UNITS as u32);
    }

    #[test]
    fn a_joined_piece_carries_the_later_stamp_across_the_wrap() {
        assert_eq!(later(5, 9, 10), 9);
        assert_eq!(later(u32::MAX, 3, 10), 3);
        assert_eq!(number_of(9, 10), 9);
        assert_eq!(number_of(u32::MAX, (1 << 32) + 10), (1 << 32) - 1);
        assert_eq!(number_of(9, (7 << 32) + 10), (7 << 32) + 9, "never earlier than the truth");
        let mut arena = with_pages(1);
        let (one, other) = (arena.take(10).unwrap(), arena.take(10).unwrap());
        assert!(arena.give(one, 7, 9) && arena.give(other, 9, 9));
        assert!(arena.take_ready(5, |stamp| stamp < 9).is_none());
        assert!(arena.take_ready(5, |stamp| stamp == 9).is_some());
    }
}
