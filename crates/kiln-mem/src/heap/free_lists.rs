//! Free pieces by size: two-level segregated lists.
//!
//! The first level is the power of two, the second divides it into 32 steps; two words of bits say which lists hold
//! something. Finding, adding and removing take the same few steps however many pieces there are. A request looks at
//! the lists whose every piece is large enough, so the first one found fits, and is at most 1/32 of a power of two larger than needed.
//! Only when all of these are empty are a few pieces of the list of the request's size tried.

use super::address_ranges::{NIL, Piece};
use super::physical_page_selection::PAGE_UNITS;

const STEP_BITS: u32 = 5;
const STEPS: usize = 1 << STEP_BITS;
/// Powers of two from 2^5 up to 2^31, and one row for everything below.
const ROWS: usize = 28;
/// How many pieces of the list of a request's size are looked at.
const TRIED_PIECES: usize = 8;

/// Lists of free pieces.
#[derive(Debug)]
pub(crate) struct FreeLists {
    rows: u32,
    steps: [u32; ROWS],
    /// Which lists may hold a piece that a [`walk`](Self::walk) wants.
    may_be_wanted: [u32; ROWS],
    heads: [u32; ROWS * STEPS],
    /// A sum over the pieces of a page and more that are in the lists.
    fingerprint: u64,
}

/// What came of a visit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Visit {
    /// The piece is not wanted until it is added to a list again.
    Unwanted,
    /// Go on.
    Next,
    /// Stop here.
    Stop,
}

impl FreeLists {
    pub(crate) fn new() -> Self {
        Self {
            rows: 0,
            steps: [0; ROWS],
            may_be_wanted: [0; ROWS],
            heads: [NIL; ROWS * STEPS],
            fingerprint: 0,
        }
    }

    /// A number that is the same when the same pieces of a page and more are free, and almost never otherwise.
    #[inline]
    pub(crate) fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// The free piece with exactly these addresses; none too if it is deep in its list.
    #[inline]
    pub(crate) fn find_exact(&self, table: &[Piece], start: u64, units: u32) -> Option<u32> {
        let fits = |at: &u32| table[*at as usize].start() == start && table[*at as usize].units == units;
        self.list(table, list_of(units)).take(TRIED_PIECES).find(fits)
    }

    /// Puts a free piece into the list of its size.
    #[inline]
    pub(crate) fn add(&mut self, table: &mut [Piece], at: u32) {
        let list_index = list_of(table[at as usize].units);
        self.fingerprint ^= fingerprint_of(&table[at as usize]);
        let head = std::mem::replace(&mut self.heads[list_index], at);
        table[head as usize].list_before = at;
        let piece = &mut table[at as usize];
        piece.list_before = NIL;
        piece.list_after = head;
        let (row, step) = (list_index / STEPS, list_index % STEPS);
        self.rows |= 1 << row;
        self.steps[row] |= 1 << step;
        self.may_be_wanted[row] |= 1 << step;
    }

    /// Takes a free piece out of its list. Whether it is the first of its list, and the last, cannot be predicted, so nothing here
    /// branches on it; links without a neighbour are written to the entry that is no piece.
    #[inline]
    pub(crate) fn remove(&mut self, table: &mut [Piece], at: u32) {
        let Piece { units, list_before: before, list_after: after, .. } = table[at as usize];
        self.fingerprint ^= fingerprint_of(&table[at as usize]);
        table[after as usize].list_before = before;
        table[before as usize].list_after = after;
        let list_index = list_of(units);
        let is_first = before == NIL;
        let head = &mut self.heads[list_index];
        *head = if is_first { after } else { *head };
        let (row, step) = (list_index / STEPS, list_index % STEPS);
        let is_only = u32::from(is_first & (after == NIL));
        self.steps[row] &= !(is_only << step);
        self.rows &= !(u32::from(self.steps[row] == 0) << row);
    }

    /// A free piece of at least `units`, and of little more if there is one.
    #[inline]
    pub(crate) fn find(&self, table: &[Piece], units: u32) -> Option<u32> {
        let own = list_of(units);
        let lowest = if is_smallest_of(own, units) { own } else { own + 1 };
        match self.first_at(lowest) {
            NIL => self.find_in(table, own, units),
            found => Some(found),
        }
    }

    /// Visits the pieces of at least about `units`, smallest lists first, until a visit says to stop; pieces of the first list may be smaller.
    /// A list of which no piece was wanted is skipped until one is added to it.
    #[inline]
    pub(crate) fn walk(
        &mut self,
        table: &mut [Piece],
        units: u32,
        mut visit: impl FnMut(&mut Piece, u32) -> Visit,
    ) {
        let first = list_of(units);
        let mut mask = u32::MAX << (first % STEPS);
        for row in first / STEPS..ROWS {
            let mut steps =
                self.may_be_wanted[row] & self.steps[row] & std::mem::replace(&mut mask, u32::MAX);
            while steps != 0 {
                let step = steps.trailing_zeros() as usize;
                steps &= steps - 1;
                let mut is_wanted = false;
                let mut at = self.heads[row * STEPS + step];
                while at != NIL {
                    let piece = &mut table[at as usize];
                    match visit(piece, at) {
                        Visit::Unwanted => {}
                        Visit::Next => is_wanted = true,
                        Visit::Stop => return,
                    }
                    at = piece.list_after;
                }
                if !is_wanted {
                    self.may_be_wanted[row] &= !(1 << step);
                }
            }
        }
    }

    /// The pieces of at least about `units`, smallest lists first; those of the first list may be smaller.
    pub(crate) fn from<'a>(&'a self, table: &'a [Piece], units: u32) -> impl Iterator<Item = u32> + 'a {
        (list_of(units)..ROWS * STEPS).flat_map(move |list_index| self.list(table, list_index))
    }

    /// The units of the largest free piece.
    pub(crate) fn largest(&self, table: &[Piece]) -> u32 {
        let Some(row) = self.rows.checked_ilog2() else { return 0 };
        let Some(step) = self.steps[row as usize].checked_ilog2() else { return 0 };
        let list_index = row as usize * STEPS + step as usize;
        self.list(table, list_index).map(|at| table[at as usize].units).max().unwrap_or(0)
    }

    #[cold]
    fn find_in(&self, table: &[Piece], list_index: usize, units: u32) -> Option<u32> {
        self.list(table, list_index).take(TRIED_PIECES).find(|at| table[*at as usize].units >= units)
    }

    fn list<'a>(&self, table: &'a [Piece], list_index: usize) -> impl Iterator<Item = u32> + 'a {
        let some = |at: u32| (at != NIL).then_some(at);
        std::iter::successors(some(self.heads[list_index]), move |at| some(table[*at as usize].list_after))
    }

    /// The first piece of the first list, at or after this one, that holds something.
    #[inline]
    fn first_at(&self, list_index: usize) -> u32 {
        let (row, step) = (list_index / STEPS, list_index % STEPS);
        let steps = self.steps.get(row).copied().unwrap_or(0) & (u32::MAX << step);
        if steps != 0 {
            return self.heads[row * STEPS + steps.trailing_zeros() as usize];
        }
        let rows = self.rows & (u32::MAX.checked_shl(row as u32 + 1).unwrap_or(0));
        if rows == 0 {
            return NIL;
        }
        let row = rows.trailing_zeros() as usize;
        self.heads[row * STEPS + self.steps[row].trailing_zeros() as usize]
    }
}

/// What a piece adds to the state; nothing where it holds no page.
#[inline]
fn fingerprint_of(piece: &Piece) -> u64 {
    const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
    let mixed = (piece.start() ^ u64::from(piece.units) << 40).wrapping_mul(MIX);
    let mixed = (mixed ^ mixed >> 32).wrapping_mul(MIX);
    // Sizes are random too: a product costs less than a branch that is taken half of the time.
    mixed * u64::from(u64::from(piece.units) >= PAGE_UNITS)
}

/// The list of pieces of so many units.
#[inline]
fn list_of(units: u32) -> usize {
    if units < STEPS as u32 {
        return units as usize;
    }
    let log = units.ilog2();
    // The leading one of the shifted size counts as one row more.
    ((log - STEP_BITS) as usize) * STEPS + (units >> (log - STEP_BITS)) as usize
}

/// Whether no smaller piece can be in the list.
#[inline]
fn is_smallest_of(list_index: usize, units: u32) -> bool {
    let row = (list_index / STEPS) as u32;
    row < 2 || units.trailing_zeros() >= row - 1
}

#[cfg(test)]
mod tests {
    use super::super::address_ranges::PieceTable;
    use super::*;

    fn filled(sizes: &[u32]) -> (PieceTable, FreeLists) {
        let (mut pieces, mut free_lists) = (PieceTable::new(), FreeLists::new());
        for units in sizes {
            let at = pieces.add(0, *units);
            pieces[at].set_free(true);
            free_lists.add(pieces.table(), at);
        }
        (pieces, free_lists)
    }

    #[test]
    fn lists_are_in_the_order_of_size() {
        let dense = if cfg!(miri) { 1000 } else { 100_000 };
        let mut last = list_of(1);
        for units in (2..dense).chain((dense..u32::MAX - 9_999_999).step_by(9_999_991)) {
            let list_index = list_of(units);
            assert!(list_index >= last, "{units}");
            if list_index != last && units < dense {
                assert_eq!(last + 1, list_index);
                assert!(is_smallest_of(list_index, units));
            } else if (64..dense).contains(&units) {
                assert!(!is_smallest_of(list_index, units), "{units}");
            }
            last = list_index;
        }
        assert_eq!(list_of(u32::MAX), ROWS * STEPS - 1);
    }

    #[test]
    fn what_is_found_fits_and_is_little_more() {
        let (mut pieces, free_lists) = filled(&[10, 100, 1000, 5000, 70_000]);
        for (wanted, expected) in [(1, 10), (10, 10), (11, 100), (100, 100), (990, 1000), (4000, 5000)] {
            let found = free_lists.find(pieces.table(), wanted).unwrap();
            assert_eq!(pieces[found].units, expected, "for {wanted}");
        }
        assert_eq!(free_lists.find(pieces.table(), 70_001), None);
        let own_list = free_lists.find(pieces.table(), 70_000).unwrap();
        assert_eq!(pieces[own_list].units, 70_000);
        assert_eq!(free_lists.find(pieces.table(), u32::MAX), None);
        assert_eq!(free_lists.largest(pieces.table()), 70_000);
    }

    #[test]
    fn removing_in_any_order_empties_every_list() {
        let sizes: Vec<u32> = (1..500).map(|at| at * at % 4001 + 1).collect();
        let (mut pieces, mut free_lists) = filled(&sizes);
        for at in (0..sizes.len() as u32).map(|at| at * 211 % sizes.len() as u32) {
            free_lists.remove(pieces.table(), at + 1);
        }
        assert_eq!((free_lists.rows, free_lists.steps), (0, [0; ROWS]));
        assert_eq!(free_lists.largest(pieces.table()), 0);
    }

    #[test]
    fn the_same_free_pieces_have_the_same_fingerprint_in_any_order() {
        let page = PAGE_UNITS as u32;
        let (mut pieces, mut free_lists) = filled(&[page, 3 * page, page - 1]);
        let whole = free_lists.fingerprint();
        free_lists.remove(pieces.table(), 3);
        assert_eq!(free_lists.fingerprint(), whole, "what holds no page does not count");
        free_lists.remove(pieces.table(), 1);
        let without = free_lists.fingerprint();
        free_lists.remove(pieces.table(), 2);
        assert!(free_lists.fingerprint() == 0 && without != 0 && without != whole);
        [1, 3, 2].into_iter().for_each(|at| free_lists.add(pieces.table(), at));
        assert_eq!(free_lists.fingerprint(), whole);
        let found = free_lists.find_exact(pieces.table(), 0, 3 * page);
        assert_eq!((found, free_lists.find_exact(pieces.table(), 1, 3 * page)), (Some(2), None));
    }

    #[test]
    fn a_walk_goes_up_and_skips_unwanted_lists_until_they_change() {
        let (mut pieces, mut free_lists) = filled(&[3, 3, 40, 41, 900, 33]);
        let mut walk = |pieces: &mut PieceTable, unwanted: u32| {
            let mut seen = Vec::new();
            free_lists.walk(pieces.table(), 30, |piece, _| {
                seen.push(piece.units);
                if piece.units == unwanted { Visit::Unwanted } else { Visit::Next }
            });
            seen
        };
        assert_eq!(walk(&mut pieces, 40), [33, 40, 41, 900]);
        assert_eq!(walk(&mut pieces, 0), [33, 41, 900]);
        let at = pieces.add(0, 40);
        free_lists.add(pieces.table(), at);
        let mut seen = 0;
        free_lists.walk(pieces.table(), 30, |_, _| {
            seen += 1;
            if seen == 3 { Visit::Stop } else { Visit::Next }
        });
        assert_eq!(seen, 3, "33, 40, 40");
    }
}
