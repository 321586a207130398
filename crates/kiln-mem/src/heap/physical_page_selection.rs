//! Which frames of an arena are free as a whole, and removing them from the arena.
//!
//! Small pieces are looked at first, so that long runs stay long. A piece without a whole frame is marked, and skipped until it changes.

use super::address_ranges::NIL;
use super::arena::{Arena, later};
use super::free_lists::Visit;
use super::physical_pages::PageRun;
use crate::try_reserve::TryGrow;

/// Units of a page of 2 MiB.
pub(crate) const PAGE_UNITS: u64 = 8192;
/// Pieces of less than this part of what is wanted are looked at only if the others are not enough.
const SMALL_PART: u32 = 64;

/// Where frames begin and end. Only asked about pages that belong to an arena.
pub(crate) trait FrameBounds {
    /// The first whole frames in a range of pages, with at least `pages` pages if there are as many; none if there are
    /// none.
    fn whole_frames(&self, from: u32, end: u32, pages: u32) -> Option<FrameRun>;

    /// The same run without its first frames, as long as these have no more than `pages` pages.
    fn skip_frames(&self, row: FrameRun, pages: u32) -> FrameRun;
}

/// Contiguous frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FrameRun {
    pub(crate) first_page: u32,
    pub(crate) pages: u32,
    /// Where the [`FrameBounds`] find the first one, and how many there are; for them alone.
    pub(crate) hint: (u32, u32, u32),
    /// Whether no whole frame lies before it in its piece, and none after it.
    pub(crate) is_first: bool,
    pub(crate) is_last: bool,
}

/// Whole frames inside one free piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SelectedFrames {
    pub(crate) piece: u32,
    pub(crate) row: FrameRun,
}

impl Arena {
    /// Selects whole frames from free pieces that are ready, the smallest pieces first, until they have `wanted` pages; what is found
    /// is left in `runs`. `false` if there are not enough.
    pub(crate) fn choose_frames(
        &mut self,
        wanted: u32,
        map: &impl FrameBounds,
        mut ready: impl FnMut(u32) -> bool,
        runs: &mut Vec<SelectedFrames>,
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

    /// Lists whole frames from pieces of at least `least` pages until there are enough; returns how many pages they have.
    fn collect_frames(
        &mut self,
        least: u32,
        wanted: u32,
        map: &impl FrameBounds,
        ready: &mut impl FnMut(u32) -> bool,
        runs: &mut Vec<SelectedFrames>,
    ) -> u32 {
        runs.clear();
        let mut found = 0;
        let least = least.saturating_mul(PAGE_UNITS as u32);
        self.free_lists.walk(self.pieces.table(), least, |piece, at| {
            if piece.has_no_frame() {
                return Visit::Unwanted;
            }
            let from = piece.start().div_ceil(PAGE_UNITS) as u32;
            let end = (piece.end() / PAGE_UNITS) as u32;
            let Some(row) = map.whole_frames(from, end, wanted - found) else {
                piece.set_no_frame();
                return Visit::Unwanted;
            };
            if runs.try_grow(1).is_err() {
                return Visit::Stop;
            }
            if ready(piece.stamp) {
                found += row.pages;
                runs.push(SelectedFrames { piece: at, row });
            }
            if found < wanted { Visit::Next } else { Visit::Stop }
        });
        found
    }

    /// The whole pages in each free piece.
    pub(crate) fn free_pages(&self) -> impl Iterator<Item = PageRun> + '_ {
        self.free_lists.from(self.pieces.as_slice(), PAGE_UNITS as u32).filter_map(|at| {
            let piece = &self.pieces[at];
            let first_page = piece.start().div_ceil(PAGE_UNITS) as u32;
            let end = (piece.end() / PAGE_UNITS) as u32;
            (first_page < end).then(|| PageRun { first_page, pages: end - first_page })
        })
    }

    /// Keeps selected pieces from being taken while their frames are mapped elsewhere.
    pub(crate) fn hold(&mut self, runs: &[SelectedFrames]) {
        let table = self.pieces.table();
        for run in runs {
            self.free_lists.remove(table, run.piece);
            table[run.piece as usize].set_free(false);
        }
    }

    /// Makes pieces that were held free again.
    pub(crate) fn release_held(&mut self, runs: &[SelectedFrames], now: u32) {
        for run in runs {
            let stamp = self.pieces[run.piece].stamp;
            self.release(run.piece, stamp, now);
        }
    }

    /// Removes the pages of runs, whether their pieces are held or not; the rest of these pieces is free. Returns the newest stamp among
    /// them.
    pub(crate) fn remove_pages(&mut self, runs: &[SelectedFrames], now: u32) -> u32 {
        let mut newest = None;
        for run in runs {
            let stamp = self.pieces[run.piece].stamp;
            newest = Some(newest.map_or(stamp, |newest| later(newest, stamp, now)));
            self.remove_run(*run);
        }
        newest.unwrap_or(now)
    }

    fn remove_run(&mut self, run: SelectedFrames) {
        let (from, to) = (page_start(run.row.first_page), page_start(run.row.first_page + run.row.pages));
        let piece = self.pieces[run.piece];
        if piece.is_free() {
            self.free_lists.remove(self.pieces.table(), run.piece);
        }
        self.owned_units -= to - from;
        let right = if to < piece.end() {
            let right = self.pieces.add(to, (piece.end() - to) as u32);
            self.pieces[right].after = piece.after;
            self.make_free(right, piece.stamp);
            if run.row.is_last {
                self.pieces[right].set_no_frame();
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
                self.pieces[run.piece].set_no_frame();
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

/// Removes frames that are not needed from the selection, beginning with the first run.
fn drop_excess(runs: &mut Vec<SelectedFrames>, excess: u32, map: &impl FrameBounds) {
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
    use super::super::arena::TakenPiece;
    use super::super::arena::tests::{free_stretches, with_pages};
    use super::*;

    /// Frames that all have the same number of pages.
    struct Even(u32);

    impl FrameBounds for Even {
        fn whole_frames(&self, from: u32, end: u32, pages: u32) -> Option<FrameRun> {
            let first_page = from.next_multiple_of(self.0);
            let end = (first_page + pages.min(1000)).next_multiple_of(self.0).min(end / self.0 * self.0);
            let row = FrameRun {
                first_page,
                pages: end - first_page,
                hint: (0, 0, 0),
                is_first: true,
                is_last: false,
            };
            (first_page < end).then_some(row)
        }

        fn skip_frames(&self, row: FrameRun, pages: u32) -> FrameRun {
            let skipped = (pages / self.0 * self.0).min(row.pages);
            let (first_page, pages) = (row.first_page + skipped, row.pages - skipped);
            FrameRun { first_page, pages, is_first: skipped == 0, ..row }
        }
    }

    #[test]
    fn frames_are_chosen_whole_and_from_the_smallest_pieces() {
        let mut arena = with_pages(32);
        let taken: Vec<TakenPiece> = (0..16).map(|_| arena.take(2 * PAGE_UNITS as u32).unwrap()).collect();
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
        arena.release_held(&runs, 0);
        assert_eq!(free_stretches(&arena).len(), 3);
        arena.hold(&runs);
        arena.remove_pages(&runs, 0);
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
