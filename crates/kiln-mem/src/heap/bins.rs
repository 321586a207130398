//! Free pieces by size: two-level segregated lists.
//!
//! The first level is the power of two, the second divides it into 32 steps; two words of bits say which lists hold
//! something. Finding, adding and removing take the same few steps however many pieces there are. A request looks at
//! the lists whose every piece is large enough, so the first one found fits and at most 1/32 of a power of two is
//! passed over; only when all of those are empty are a few pieces of the request's own list tried.

use super::pieces::{NONE, Pieces};

const STEP_BITS: u32 = 5;
const STEPS: usize = 1 << STEP_BITS;
/// Powers of two from 2^5 up to 2^31, and one row for everything below.
const ROWS: usize = 28;
/// How many pieces of a request's own list are looked at.
const TRIED_PIECES: usize = 8;

/// Lists of free pieces.
#[derive(Debug)]
pub(crate) struct Bins {
    rows: u32,
    steps: [u32; ROWS],
    /// Which lists may hold something that [`walk`](Self::walk) is interested in.
    interesting: [u32; ROWS],
    heads: [[u32; STEPS]; ROWS],
}

/// What came of a visit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Visit {
    /// The piece is of no interest until it is added to a list again.
    Dull,
    /// It is of interest; go on.
    Next,
    /// Enough.
    Stop,
}

/// Row and step of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Bin {
    row: usize,
    step: usize,
}

impl Bins {
    pub(crate) fn new() -> Self {
        Self { rows: 0, steps: [0; ROWS], interesting: [0; ROWS], heads: [[NONE; STEPS]; ROWS] }
    }

    /// Puts a free piece into the list of its size.
    #[inline]
    pub(crate) fn add(&mut self, pieces: &mut Pieces, at: u32) {
        let Bin { row, step } = bin_of(pieces[at].units);
        let head = std::mem::replace(&mut self.heads[row][step], at);
        let piece = &mut pieces[at];
        piece.list_before = NONE;
        piece.list_after = head;
        if head != NONE {
            pieces[head].list_before = at;
        }
        self.rows |= 1 << row;
        self.steps[row] |= 1 << step;
        self.interesting[row] |= 1 << step;
    }

    /// Takes a free piece out of its list.
    #[inline]
    pub(crate) fn remove(&mut self, pieces: &mut Pieces, at: u32) {
        let (before, after) = (pieces[at].list_before, pieces[at].list_after);
        if after != NONE {
            pieces[after].list_before = before;
        }
        if before != NONE {
            pieces[before].list_after = after;
            return;
        }
        let Bin { row, step } = bin_of(pieces[at].units);
        self.heads[row][step] = after;
        if after == NONE {
            self.steps[row] &= !(1 << step);
            if self.steps[row] == 0 {
                self.rows &= !(1 << row);
            }
        }
    }

    /// A free piece of at least so many units, and of little more if there is one.
    #[inline]
    pub(crate) fn find(&self, pieces: &Pieces, units: u32) -> Option<u32> {
        let own = bin_of(units);
        let lowest = if is_smallest_of(own, units) { Some(own) } else { next(own) };
        if let Some(bin) = lowest.and_then(|bin| self.first_at(bin)) {
            return Some(self.head(bin));
        }
        self.list(pieces, own).take(TRIED_PIECES).find(|at| pieces[*at].units >= units)
    }

    /// Visits the pieces of at least about so many units, smallest lists first, for as long as it is wanted; those of
    /// the first list may be smaller. A list of which every piece was dull is passed over until one is added to it.
    #[inline]
    pub(crate) fn walk(
        &mut self,
        pieces: &mut Pieces,
        units: u32,
        mut visit: impl FnMut(&mut Pieces, u32) -> Visit,
    ) {
        let Bin { row: first_row, step: first_step } = bin_of(units);
        let mut mask = u32::MAX << first_step;
        for row in first_row..ROWS {
            let mut steps = self.interesting[row] & self.steps[row] & std::mem::replace(&mut mask, u32::MAX);
            while steps != 0 {
                let step = steps.trailing_zeros() as usize;
                steps &= steps - 1;
                let mut dull = true;
                let mut at = self.heads[row][step];
                while at != NONE {
                    match visit(pieces, at) {
                        Visit::Dull => {}
                        Visit::Next => dull = false,
                        Visit::Stop => return,
                    }
                    at = pieces[at].list_after;
                }
                if dull {
                    self.interesting[row] &= !(1 << step);
                }
            }
        }
    }

    /// The pieces of at least about so many units, smallest lists first; those of the first list may be smaller.
    pub(crate) fn from<'a>(&'a self, pieces: &'a Pieces, units: u32) -> impl Iterator<Item = u32> + 'a {
        std::iter::successors(self.first_at(bin_of(units)), |bin| next(*bin).and_then(|bin| self.first_at(bin)))
            .flat_map(|bin| self.list(pieces, bin))
    }

    /// The units of the largest free piece.
    pub(crate) fn largest(&self, pieces: &Pieces) -> u32 {
        let Some(row) = self.rows.checked_ilog2() else { return 0 };
        let Some(step) = self.steps[row as usize].checked_ilog2() else { return 0 };
        let bin = Bin { row: row as usize, step: step as usize };
        self.list(pieces, bin).map(|at| pieces[at].units).max().unwrap_or(0)
    }

    fn head(&self, bin: Bin) -> u32 {
        self.heads[bin.row][bin.step]
    }

    fn list<'a>(&self, pieces: &'a Pieces, bin: Bin) -> impl Iterator<Item = u32> + 'a {
        let some = |at: u32| (at != NONE).then_some(at);
        std::iter::successors(some(self.head(bin)), move |at| some(pieces[*at].list_after))
    }

    /// The first list at or after this one that holds something.
    #[inline]
    fn first_at(&self, bin: Bin) -> Option<Bin> {
        let steps = self.steps[bin.row] & (u32::MAX << bin.step);
        if steps != 0 {
            return Some(Bin { row: bin.row, step: steps.trailing_zeros() as usize });
        }
        let rows = self.rows & (u32::MAX << 1 << bin.row);
        if rows == 0 {
            return None;
        }
        let row = rows.trailing_zeros() as usize;
        Some(Bin { row, step: self.steps[row].trailing_zeros() as usize })
    }
}

#[inline]
fn bin_of(units: u32) -> Bin {
    if units < STEPS as u32 {
        return Bin { row: 0, step: units as usize };
    }
    let log = units.ilog2();
    let step = units >> (log - STEP_BITS) & (STEPS as u32 - 1);
    Bin { row: (log - STEP_BITS + 1) as usize, step: step as usize }
}

/// Whether no smaller piece can be in the list.
#[inline]
fn is_smallest_of(bin: Bin, units: u32) -> bool {
    bin.row < 2 || units.trailing_zeros() >= bin.row as u32 - 1
}

#[inline]
fn next(bin: Bin) -> Option<Bin> {
    match (bin.row, bin.step + 1) {
        (row, step) if step < STEPS => Some(Bin { row, step }),
        (row, _) if row + 1 < ROWS => Some(Bin { row: row + 1, step: 0 }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(sizes: &[u32]) -> (Pieces, Bins) {
        let (mut pieces, mut bins) = (Pieces::new(), Bins::new());
        for units in sizes {
            let at = pieces.add(0, *units);
            pieces[at].set_free(true);
            bins.add(&mut pieces, at);
        }
        (pieces, bins)
    }

    #[test]
    fn lists_are_in_the_order_of_size() {
        let mut last = bin_of(1);
        for units in (2..100_000).chain((100_000..u32::MAX - 9_999_999).step_by(9_999_991)) {
            let bin = bin_of(units);
            assert!((bin.row, bin.step) >= (last.row, last.step), "{units}");
            if bin != last && units < 100_000 {
                assert_eq!(next(last), Some(bin));
                assert!(is_smallest_of(bin, units));
            } else if units >= 64 && units < 100_000 {
                assert!(!is_smallest_of(bin, units), "{units}");
            }
            last = bin;
        }
        assert_eq!(bin_of(u32::MAX), Bin { row: ROWS - 1, step: STEPS - 1 });
    }

    #[test]
    fn what_is_found_fits_and_the_next_larger_list_is_preferred() {
        let (pieces, bins) = filled(&[10, 100, 1000, 5000, 70_000]);
        for (wanted, expected) in [(1, 10), (10, 10), (11, 100), (100, 100), (990, 1000), (4999, 5000)] {
            let found = bins.find(&pieces, wanted).unwrap();
            assert_eq!(pieces[found].units, expected, "for {wanted}");
        }
        assert_eq!(bins.find(&pieces, 70_001), None);
        assert_eq!(pieces[bins.find(&pieces, 70_000).unwrap()].units, 70_000);
        assert_eq!(bins.largest(&pieces), 70_000);
    }

    #[test]
    fn removing_in_any_order_empties_every_list() {
        let sizes: Vec<u32> = (1..500).map(|at| at * at % 4001 + 1).collect();
        let (mut pieces, mut bins) = filled(&sizes);
        for at in (0..sizes.len() as u32).map(|at| at * 211 % sizes.len() as u32) {
            bins.remove(&mut pieces, at);
        }
        assert_eq!((bins.rows, bins.steps), (0, [0; ROWS]));
        assert_eq!(bins.largest(&pieces), 0);
    }

    #[test]
    fn walking_up_meets_every_piece_once() {
        let (pieces, bins) = filled(&[3, 3, 40, 41, 900, 33]);
        let sizes: Vec<u32> = bins.from(&pieces, 30).map(|at| pieces[at].units).collect();
        assert_eq!(sizes, [33, 40, 41, 900]);
    }
}
