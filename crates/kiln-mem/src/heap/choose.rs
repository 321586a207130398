//! Which frames of an arena are free as a whole, and giving them up.
//!
//! Small pieces are looked at first, so that long rows stay long. A piece found to hold no whole frame is marked, and
//! passed over until it changes.

use super::arena::{Arena, later};
use super::atlas::PageRun;
use super::bins::Visit;
use super::pieces::NIL;

/// Units of a page of 2 MiB.
pub(crate) const PAGE_UNITS: u64 = 8192;
/// Pieces of less than this part of what is wanted are looked at only if the others are not enough.
const SMALL_PART: u32 = 64;

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
    /// Whether no whole frame lies before it in its piece, and none after it.
    pub(crate) is_first: bool,
    pub(crate) is_last: bool,
}

/// Whole frames inside one free piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Run {
    pub(crate) piece: u32,
    pub(crate) row: FrameRow,
}

impl Arena {
    /// Chooses whole frames from free pieces that are ready, the smallest pieces first, until they have so many
    /// pages; what is found is left in `runs`. `false` if there are not enough.
    pub(crate) fn choose_frames(
        &mut self,
        wanted: u32,
        map: &impl FrameMap,
        mut ready: impl FnMut(u32) -> bool,
        runs: &mut Vec<Run>,
    ) -> bool {
        let found = self.collect_frames((wanted / SMALL_PART).max(1), wanted, map, &mut ready, runs);
        let found = if found < wanted && wanted / SMALL_PART > 1 {
            self.collect_frames(1, wanted, map, &mut ready, runs)
        } else {
            found
        };
        if found < wanted {
            return false;
        }
        drop_excess(runs, found - wanted, map);
        true
    }

    /// Lists whole frames from pieces of at least so many pages until there are enough; returns how many pages they have.
    fn collect_frames(
        &mut self,
        least: u32,
        wanted: u32,
        map: &impl FrameMap,
        ready: &mut impl FnMut(u32) -> bool,
        runs: &mut Vec<Run>,
    ) -> u32 {
        runs.clear();
        let mut found = 0;
        let least = least.saturating_mul(PAGE_UNITS as u32);
        self.bins.walk(self.pieces.table(), least, |piece, at| {
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
        found
    }

    /// The whole pages in each free piece.
    pub(crate) fn free_pages(&self) -> impl Iterator<Item = PageRun> + '_ {
        self.bins.from(self.pieces.as_slice(), PAGE_UNITS as u32).filter_map(|at| {
            let piece = &self.pieces[at];
            let first_page = piece.start().div_ceil(PAGE_UNITS) as u32;
            let end = (piece.end() / PAGE_UNITS) as u32;
            (first_page < end).then(|| PageRun { first_page, pages: end - first_page })
        })
    }

    /// Keeps chosen pieces from being taken while their frames are mapped elsewhere.
    pub(crate) fn hold(&mut self, runs: &[Run]) {
        let table = self.pieces.table();
        for run in runs {
            self.bins.remove(table, run.piece);
            table[run.piece as usize].set_free(false);
        }
    }

    /// Makes pieces that were held free again.
    pub(crate) fn let_go(&mut self, runs: &[Run], now: u32) {
        for run in runs {
            let stamp = self.pieces[run.piece].stamp;
            self.release(run.piece, stamp, now);
        }
    }

    /// Gives the pages of runs up, whether they are held or not; what is left of their pieces is free. Returns the newest
    /// stamp among them.
    pub(crate) fn part_with(&mut self, runs: &[Run], now: u32) -> u32 {
        let mut newest = None;
        for run in runs {
            let stamp = self.pieces[run.piece].stamp;
            newest = Some(newest.map_or(stamp, |newest| later(newest, stamp, now)));
            self.part_with_run(*run);
        }
        newest.unwrap_or(now)
    }

    fn part_with_run(&mut self, run: Run) {
        let (from, to) = (page_start(run.row.first_page), page_start(run.row.first_page + run.row.pages));
        let piece = self.pieces[run.piece];
        if piece.is_free() {
            self.bins.remove(self.pieces.table(), run.piece);
        }
        self.owned_units -= to - from;
        let right = if to < piece.end() {
            let right = self.pieces.add(to, (piece.end() - to) as u32);
            self.pieces[right].after = piece.after;
            self.make_free(right, piece.stamp);
            if run.row.is_last {
                self.pieces[right].set_barren();
            }
            right
        } else {
            NIL
        };
        self.pieces[piece.after].before = right;
        if self.tail == run.piece {
            self.tail = right;
        }
        if from > piece.start() {
            self.pieces[run.piece].units = (from - piece.start()) as u32;
            self.pieces[run.piece].after = NIL;
            self.make_free(run.piece, piece.stamp);
            if run.row.is_first {
                self.pieces[run.piece].set_barren();
            }
        } else {
            self.pieces[piece.before].after = NIL;
            self.pieces.drop(run.piece);
        }
    }
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
    use super::super::arena::Taken;
    use super::super::arena::tests::{free_stretches, with_pages};
    use super::*;

    /// Frames of so many pages each.
    struct Even(u32);

    impl FrameMap for Even {
        fn whole_frames(&self, from: u32, end: u32, pages: u32) -> Option<FrameRow> {
            let first_page = from.next_multiple_of(self.0);
            let end = (first_page + pages.min(1000)).next_multiple_of(self.0).min(end / self.0 * self.0);
            let row = FrameRow {
                first_page,
                pages: end - first_page,
                hint: (0, 0, 0),
                is_first: true,
                is_last: false,
            };
            (first_page < end).then_some(row)
        }

        fn skip_frames(&self, row: FrameRow, pages: u32) -> FrameRow {
            let skipped = (pages / self.0 * self.0).min(row.pages);
            let (first_page, pages) = (row.first_page + skipped, row.pages - skipped);
            FrameRow { first_page, pages, is_first: skipped == 0, ..row }
        }
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
}
