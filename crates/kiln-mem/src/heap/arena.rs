//! What one stream owns: pieces of address space, and which of them are free.
//!
//! Everything here is arithmetic on the host; no device and no lock is known. Addresses are counted in units, pages
//! in multiples of [`PAGE_UNITS`]. The invariants: neighbours that are both free are one piece; a free piece is in
//! exactly one list; a piece whose neighbour is `NONE` has nothing of this arena beside it.
//!
//! Each free piece remembers when it was last used, as the low half of a submission number of the arena's stream.
//! The upper half is recovered from the newest number at the time it is looked at. A piece that slept through more
//! than 2^32 submissions then looks newer than it is, which errs to the safe side.

use super::bins::{Bins, Visit};
use super::pieces::{NONE, Pieces};

/// Units of a page of 2 MiB.
pub(crate) const PAGE_UNITS: u64 = 8192;

/// Pieces of address space that belong together.
#[derive(Debug)]
pub(crate) struct Arena {
    pieces: Pieces,
    bins: Bins,
    /// The piece that ends where the lane ends, to be joined with what is mapped behind it.
    tail: u32,
    owned_units: u64,
    used_units: u64,
    taken: usize,
}

/// A piece that was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Taken {
    pub(crate) piece: u32,
    pub(crate) start: u64,
}

/// Where new addresses lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Edge {
    /// At the end of the arena's own lane, where more will follow.
    Lane,
    /// Somewhere else.
    Apart,
}

/// Where frames have their homes. Only asked about pages that belong to an arena.
pub(crate) trait FrameMap {
    /// The first whole frames in a range of pages, with at least so many pages if there are as many; none if there are
    /// none.
    fn whole_frames(&self, from: u32, end: u32, pages: u32) -> Option<FrameRow>;

    /// The same without the first frames, as far as they have no more than so many pages.
    fn skip_frames(&self, row: FrameRow, pages: u32) -> FrameRow;
}

/// Frames one after the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FrameRow {
    pub(crate) first_page: u32,
    pub(crate) pages: u32,
    /// Where the map finds the first one, and how many there are; for the map alone.
    pub(crate) hint: (u32, u32, u32),
}

/// Whole frames inside one free piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Run {
    pub(crate) piece: u32,
    pub(crate) row: FrameRow,
}

impl Arena {
    pub(crate) fn new() -> Self {
        Self {
            pieces: Pieces::new(),
            bins: Bins::new(),
            tail: NONE,
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
        self.bins.largest(&self.pieces)
    }

    /// Free units at the end of the lane, which what is mapped next will continue.
    pub(crate) fn tail_units(&self) -> u32 {
        if self.tail == NONE || !self.pieces[self.tail].is_free() { 0 } else { self.pieces[self.tail].units }
    }

    /// Adds free addresses with memory behind them; returns their piece.
    pub(crate) fn extend(&mut self, start: u64, units: u32, edge: Edge, stamp: u32, now: u32) -> u32 {
        let at = self.pieces.add(start, units);
        self.owned_units += u64::from(units);
        if edge == Edge::Lane {
            if self.tail != NONE && self.pieces[self.tail].end() == start {
                self.pieces.join(self.tail, at);
            }
            self.tail = at;
        }
        self.release(at, stamp, now)
    }

    /// Takes so many units from the front of a free piece that holds them.
    pub(crate) fn take_from(&mut self, piece: u32, units: u32) -> Taken {
        self.take_front(piece, units)
    }

    /// Takes so many units from a piece that holds them.
    #[inline]
    pub(crate) fn take(&mut self, units: u32) -> Option<Taken> {
        let at = self.bins.find(&self.pieces, units)?;
        Some(self.take_front(at, units))
    }

    /// Takes so many units from a piece that is large enough and was last used before or at a stamp the caller accepts.
    pub(crate) fn take_ready(&mut self, units: u32, mut ready: impl FnMut(u32) -> bool) -> Option<Taken> {
        const TRIED_PIECES: usize = 64;
        let pieces = &self.pieces;
        let fitting = self.bins.from(pieces, units).filter(|at| pieces[*at].units >= units);
        let found = fitting.take(TRIED_PIECES).find(|at| ready(pieces[*at].stamp));
        found.map(|at| self.take_front(at, units))
    }

    /// Takes so many units that start at a multiple of `align`, counted with `phase` added to each address.
    pub(crate) fn take_aligned(&mut self, units: u32, align: u64, phase: u64) -> Option<Taken> {
        let padded = u32::try_from(u64::from(units).checked_add(align - 1)?).ok()?;
        let at = self.bins.find(&self.pieces, padded)?;
        let start = self.pieces[at].start();
        let lead = (start + phase).next_multiple_of(align) - (start + phase);
        if lead == 0 {
            return Some(self.take_front(at, units));
        }
        self.bins.remove(&mut self.pieces, at);
        let rest = self.cut(at, lead as u32);
        self.bins.add(&mut self.pieces, at);
        self.bins.add(&mut self.pieces, rest);
        Some(self.take_front(rest, units))
    }

    /// Whether a piece is taken.
    pub(crate) fn is_taken(&self, taken: Taken) -> bool {
        self.pieces.taken_at(taken.piece, taken.start).is_some()
    }

    /// Makes all pieces look as if nothing had used them; their stream is gone and done.
    pub(crate) fn forget_stamps(&mut self) {
        self.pieces.iter_mut().for_each(|piece| piece.stamp = 0);
    }

    /// Makes a taken piece free. `false`, and nothing is changed, if there is no such piece.
    #[inline]
    pub(crate) fn give(&mut self, taken: Taken, stamp: u32, now: u32) -> bool {
        let Some(piece) = self.pieces.taken_at(taken.piece, taken.start) else { return false };
        self.used_units -= u64::from(piece.units);
        self.taken -= 1;
        self.release(taken.piece, stamp, now);
        true
    }

    /// Forgets everything; nothing is taken any more.
    pub(crate) fn clear(&mut self) {
        self.pieces.clear();
        self.bins = Bins::new();
        self.tail = NONE;
        (self.owned_units, self.used_units, self.taken) = (0, 0, 0);
    }

    /// Chooses whole frames from free pieces that are ready, the smallest pieces first, until they have so many
    /// pages; what is found is left in `runs`. `false` if there are not enough.
    pub(crate) fn choose_frames(
        &mut self,
        wanted: u32,
        map: &impl FrameMap,
        mut ready: impl FnMut(u32) -> bool,
        runs: &mut Vec<Run>,
    ) -> bool {
        runs.clear();
        let mut found = 0;
        self.bins.walk(&mut self.pieces, PAGE_UNITS as u32, |pieces, at| {
            let piece = &mut pieces[at];
            if piece.is_barren() {
                return Visit::Dull;
            }
            let from = piece.start().div_ceil(PAGE_UNITS) as u32;
            let end = (piece.end() / PAGE_UNITS) as u32;
            let Some(row) = map.whole_frames(from, end, wanted - found) else {
                piece.set_barren();
                return Visit::Dull;
            };
            if ready(piece.stamp) {
                found += row.pages;
                runs.push(Run { piece: at, row });
            }
            if found < wanted { Visit::Next } else { Visit::Stop }
        });
        if found < wanted {
            return false;
        }
        drop_excess(runs, found - wanted, map);
        true
    }

    /// Keeps chosen pieces from being taken while their frames are mapped elsewhere.
    pub(crate) fn hold(&mut self, runs: &[Run]) {
        for run in runs {
            self.bins.remove(&mut self.pieces, run.piece);
            self.pieces[run.piece].set_free(false);
        }
    }

    /// Makes pieces that were held free again.
    pub(crate) fn let_go(&mut self, runs: &[Run], now: u32) {
        for run in runs {
            let stamp = self.pieces[run.piece].stamp;
            self.release(run.piece, stamp, now);
        }
    }

    /// Gives the pages of held runs up; what is left of their pieces is free. Returns the newest stamp among them.
    pub(crate) fn part_with(&mut self, runs: &[Run], now: u32) -> u32 {
        let mut newest = None;
        for run in runs {
            let stamp = self.pieces[run.piece].stamp;
            newest = Some(newest.map_or(stamp, |newest| later(newest, stamp, now)));
            self.part_with_run(*run);
        }
        newest.unwrap_or(now)
    }

    /// Gives up exactly these addresses, if they are one free piece that is ready.
    pub(crate) fn part_with_extent(&mut self, start: u64, units: u64, ready: impl Fn(u32) -> bool) -> bool {
        let pieces = &self.pieces;
        let fits = |at: &u32| {
            let piece = &pieces[*at];
            piece.start() == start && u64::from(piece.units) == units && ready(piece.stamp)
        };
        let Some(at) = u32::try_from(units).ok().and_then(|units| self.bins.from(pieces, units).find(fits)) else {
            return false;
        };
        self.bins.remove(&mut self.pieces, at);
        self.pieces.drop(at);
        self.owned_units -= units;
        true
    }

    fn part_with_run(&mut self, run: Run) {
        let (from, to) = (page_start(run.row.first_page), page_start(run.row.first_page + run.row.pages));
        let piece = self.pieces[run.piece];
        let was_tail = self.tail == run.piece;
        self.owned_units -= to - from;
        let right = if to < piece.end() {
            let right = self.pieces.add(to, (piece.end() - to) as u32);
            self.pieces.join(right, piece.after);
            self.make_free(right, piece.stamp);
            right
        } else {
            if piece.after != NONE {
                self.pieces[piece.after].before = NONE;
            }
            NONE
        };
        if was_tail {
            self.tail = right;
        }
        if from > piece.start() {
            self.pieces[run.piece].units = (from - piece.start()) as u32;
            self.pieces[run.piece].after = NONE;
            self.make_free(run.piece, piece.stamp);
        } else {
            if piece.before != NONE {
                self.pieces[piece.before].after = NONE;
            }
            self.pieces.drop(run.piece);
        }
    }

    #[inline]
    fn take_front(&mut self, at: u32, units: u32) -> Taken {
        self.bins.remove(&mut self.pieces, at);
        if self.pieces[at].units > units {
            let rest = self.cut(at, units);
            self.bins.add(&mut self.pieces, rest);
        }
        self.pieces[at].set_free(false);
        self.used_units += u64::from(units);
        self.taken += 1;
        Taken { piece: at, start: self.pieces[at].start() }
    }

    /// Shortens a free piece and returns the rest as a free piece; neither is in a list.
    #[inline]
    fn cut(&mut self, at: u32, units: u32) -> u32 {
        let piece = self.pieces[at];
        let rest = self.pieces.add(piece.start() + u64::from(units), piece.units - units);
        self.pieces[at].units = units;
        self.pieces[rest].stamp = piece.stamp;
        self.pieces[rest].set_free(true);
        self.pieces.join(rest, piece.after);
        self.pieces.join(at, rest);
        if self.tail == at {
            self.tail = rest;
        }
        rest
    }

    /// Joins a piece that is in no list with its free neighbours and puts it into the list of its size.
    #[inline]
    fn release(&mut self, at: u32, stamp: u32, now: u32) -> u32 {
        let (mut at, mut stamp) = (at, stamp);
        let before = self.pieces[at].before;
        if before != NONE && self.pieces[before].is_free() && self.fits_one_piece(before, at) {
            self.bins.remove(&mut self.pieces, before);
            stamp = later(stamp, self.pieces[before].stamp, now);
            self.absorb(before, at);
            at = before;
        }
        let after = self.pieces[at].after;
        if after != NONE && self.pieces[after].is_free() && self.fits_one_piece(at, after) {
            self.bins.remove(&mut self.pieces, after);
            stamp = later(stamp, self.pieces[after].stamp, now);
            self.absorb(at, after);
        }
        self.make_free(at, stamp);
        at
    }

    fn make_free(&mut self, at: u32, stamp: u32) {
        self.pieces[at].stamp = stamp;
        self.pieces[at].set_free(true);
        self.bins.add(&mut self.pieces, at);
    }

    /// Whether the length of two neighbours can be counted as one piece.
    fn fits_one_piece(&self, one: u32, other: u32) -> bool {
        self.pieces[one].units.checked_add(self.pieces[other].units).is_some()
    }

    /// Makes a piece and the one after it one; neither is in a list.
    #[inline]
    fn absorb(&mut self, at: u32, after: u32) {
        let absorbed = self.pieces[after];
        self.pieces[at].units += absorbed.units;
        self.pieces.join(at, absorbed.after);
        if self.tail == after {
            self.tail = at;
        }
        self.pieces.drop(after);
    }
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

fn page_start(page: u32) -> u64 {
    u64::from(page) * PAGE_UNITS
}

/// Leaves frames out again that are not needed, from the first run on.
fn drop_excess(runs: &mut Vec<Run>, excess: u32, map: &impl FrameMap) {
    let mut excess = excess;
    for run in runs.iter_mut() {
        if excess == 0 {
            break;
        }
        let kept = map.skip_frames(run.row, excess);
        excess -= run.row.pages - kept.pages;
        run.row = kept;
    }
    runs.retain(|run| run.row.pages > 0);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Frames of so many pages each.
    struct Even(u32);

    impl FrameMap for Even {
        fn whole_frames(&self, from: u32, end: u32, pages: u32) -> Option<FrameRow> {
            let first_page = from.next_multiple_of(self.0);
            let end = (first_page + pages.min(1000)).next_multiple_of(self.0).min(end / self.0 * self.0);
            (first_page < end).then(|| FrameRow { first_page, pages: end - first_page, hint: (0, 0, 0) })
        }

        fn skip_frames(&self, row: FrameRow, pages: u32) -> FrameRow {
            let skipped = (pages / self.0 * self.0).min(row.pages);
            FrameRow { first_page: row.first_page + skipped, pages: row.pages - skipped, ..row }
        }
    }

    fn with_pages(pages: u32) -> Arena {
        let mut arena = Arena::new();
        arena.extend(0, pages * PAGE_UNITS as u32, Edge::Lane, 0, 0);
        arena
    }

    /// Free stretches in address order, after checking the invariants.
    fn free_stretches(arena: &Arena) -> Vec<(u64, u64)> {
        let mut free: Vec<(u64, u64)> = Vec::new();
        for at in arena.bins.from(&arena.pieces, 1) {
            let piece = &arena.pieces[at];
            assert!(piece.is_free());
            for (neighbour, back) in [(piece.before, 1), (piece.after, -1)] {
                if neighbour != NONE {
                    let other = &arena.pieces[neighbour];
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
        for seed in 0..40_u64 {
            let mut random = crate::heap::lcg(seed);
            let mut arena = with_pages(8);
            let mut live: Vec<(Taken, u32)> = Vec::new();
            let mut map: BTreeMap<u64, u64> = BTreeMap::new();
            for _ in 0..600 {
                if random() % 5 < 3 {
                    let units = (random() % (1 << (random() % 16 + 1))) as u32 + 1;
                    let align = 1 << (random() % 12);
                    let taken = if random() % 4 == 0 {
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
        arena.extend(PAGE_UNITS, PAGE_UNITS as u32, Edge::Lane, 0, 0);
        assert_eq!(arena.largest_free_units(), 192 + PAGE_UNITS as u32);
        assert!(arena.give(most, 0, 0));
        assert_eq!(arena.largest_free_units(), 2 * PAGE_UNITS as u32);
    }

    #[test]
    fn frames_are_chosen_whole_and_from_the_smallest_pieces() {
        let mut arena = with_pages(32);
        let taken: Vec<Taken> = (0..16).map(|_| arena.take(2 * PAGE_UNITS as u32).unwrap()).collect();
        // Free pages 0..6 (one whole frame: 0..4), 10..18 (one: 12..16), 20..32 (three).
        for (at, taken) in taken.iter().enumerate() {
            if ![3, 4, 9].contains(&at) {
                assert!(arena.give(*taken, 0, 0));
            }
        }
        let mut runs = Vec::new();
        assert!(!arena.choose_frames(21, &Even(4), |_| true, &mut runs));
        assert!(!arena.choose_frames(1, &Even(4), |_| false, &mut runs));
        assert!(arena.choose_frames(9, &Even(4), |_| true, &mut runs));
        let pages: Vec<(u32, u32)> = runs.iter().map(|run| (run.row.first_page, run.row.pages)).collect();
        assert_eq!(pages, [(0, 4), (12, 4), (20, 4)]);

        arena.hold(&runs);
        assert_eq!(arena.take(3 * PAGE_UNITS as u32), None, "held pieces are not taken");
        arena.let_go(&runs, 0);
        assert_eq!(free_stretches(&arena).len(), 3);
        arena.hold(&runs);
        arena.part_with(&runs, 0);
        let page = |page: u64| page * PAGE_UNITS;
        let left = [(4, 6), (10, 12), (16, 18), (24, 32)].map(|(from, to)| (page(from), page(to)));
        assert_eq!(free_stretches(&arena), left);
        assert_eq!(arena.owned_units(), page(20));
    }

    #[test]
    fn chosen_frames_that_are_not_needed_stay() {
        let mut arena = with_pages(16);
        let middle = (arena.take(8 * PAGE_UNITS as u32).unwrap(), arena.take(1).unwrap());
        assert!(arena.give(middle.0, 0, 0));
        // Free are pages 0..8 and 9..16, so the whole frames of the second are 12..16.
        let mut runs = Vec::new();
        assert!(arena.choose_frames(5, &Even(4), |_| true, &mut runs));
        let pages: Vec<(u32, u32)> = runs.iter().map(|run| (run.row.first_page, run.row.pages)).collect();
        assert_eq!(pages, [(12, 4), (0, 4)]);
        assert!(arena.choose_frames(9, &Even(4), |_| true, &mut runs));
        assert_eq!(runs.iter().map(|run| run.row.pages).sum::<u32>(), 12);
    }

    #[test]
    fn a_piece_found_without_frames_is_looked_at_again_when_it_changes() {
        let mut arena = with_pages(8);
        let (first, _second) = (arena.take(6 * PAGE_UNITS as u32).unwrap(), arena.take(1).unwrap());
        let mut runs = Vec::new();
        assert!(!arena.choose_frames(1, &Even(4), |_| true, &mut runs), "pages 7..8 are no frame");
        assert!(arena.give(first, 0, 0));
        assert!(arena.choose_frames(1, &Even(4), |_| true, &mut runs));
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
