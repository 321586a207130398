//! Folding: free frames from all over an arena, mapped in a row.
//!
//! A request for more pages in a row than are free in a row is met by mapping free frames one after the other at new
//! addresses. The frames are chosen from the smallest free pieces, so that long rows stay long. If the same frames
//! were folded in the same order before, the mapping is still there and no driver call is made.

use kiln_driver::PagesId;

use super::allocate::Ask;
use super::arena::{Edge, Taken};

use super::arena_cell::{ArenaCell, Books};
use super::atlas::{Atlas, PageRun};
use super::choose::{PAGE_UNITS, Run};
use super::folds::NewFold;
use super::page_ground::PageGround;
use super::streams::STOCK_MOST_UNITS;
use super::{Heap, Shard, Ticket};
use crate::error::Result;
use crate::stamp::Stamp;

/// When the window is full, this part of it is cleared of folds at once.
const FOLDS_UNMAPPED_PART: u64 = 8;

/// What came of looking for frames.
enum Found {
    /// There are not enough.
    Nothing,
    /// There are, but no addresses for them.
    NoAddresses,
    Taken(Taken),
    /// They have to be mapped first.
    Unmapped {
        new: NewFold,
        handles: Vec<PagesId>,
        runs: Vec<Run>,
        frames: Vec<u32>,
    },
}

impl Heap {
    /// Takes units out of frames folded for them; none if there are not enough free frames.
    pub(super) fn fold(&self, cell: &ArenaCell, ask: Ask) -> Result<Option<Ticket>> {
        let Some(ground) = self.ground.pages() else { return Ok(None) };
        if ask.padded_units() < PAGE_UNITS || !ask.is_plain() {
            return Ok(None);
        }
        let ticket = |taken| Some(Ticket { taken, units: ask.units, arena: cell.number });
        let mut found = self.find_frames(ground, cell, ask);
        if matches!(found, Found::NoAddresses) && self.make_room(ground, ask)? {
            found = self.find_frames(ground, cell, ask);
        }
        match found {
            Found::Nothing | Found::NoAddresses => Ok(None),
            Found::Taken(taken) => Ok(ticket(taken)),
            Found::Unmapped { new, handles, runs, frames } => {
                let mapped = ground.map_fold(new, &handles);
                let now = self.now(cell);
                let mut books = cell.lock();
                let mut atlas = ground.atlas();
                if let Err(error) = mapped {
                    atlas.folds().abandon(new);
                    books.arena.let_go(&runs, now.number as u32);
                    return if error.is_oom() { Ok(None) } else { Err(error.into()) };
                }
                atlas.folds().enter(new.fold);
                self.happened.folds_mapped.note();
                Ok(ticket(move_in(&mut books, &mut atlas, cell, &runs, &frames, new, now, ask)))
            }
        }
    }

    /// When nothing of an arena is in use but what this thread has in stock, its frames go back to their births.
    pub(super) fn go_home_if_empty(&self, shard: &Shard, cell: &ArenaCell, books: &mut Books) {
        if books.arena.used_units() > STOCK_MOST_UNITS {
            return;
        }
        if books.arena.taken() > 0 {
            let stream = cell.stream().number();
            let stocked = shard.with_front(|front| front.stock(stream).map_or(0, |stock| stock.count()));
            if stocked != books.arena.taken() {
                return;
            }
            self.give_stock(shard, cell, books);
        }
        if books.arena.taken() == 0
            && let Some(ground) = self.ground.pages()
        {
            let now = self.now(cell);
            let mut atlas = ground.atlas();
            go_home(books, &mut atlas, cell.number, now);
        }
    }

    /// The newest submission of an arena's stream.
    pub(super) fn now(&self, cell: &ArenaCell) -> Stamp {
        let stream = cell.stream();
        Stamp { stream, number: self.order.latest(stream) }
    }

    /// Unmaps folds that were not used for longest, so that there are addresses for new ones.
    fn make_room(&self, ground: &PageGround, ask: Ask) -> Result<bool> {
        self.refresh()?;
        let needed = u64::from(ask.units).div_ceil(PAGE_UNITS);
        let batch = ground.window_pages() / FOLDS_UNMAPPED_PART;
        Ok(self.release_folds(ground, needed.max(batch))? >= needed)
    }

    fn find_frames(&self, ground: &PageGround, cell: &ArenaCell, ask: Ask) -> Found {
        let now = self.now(cell);
        let mut books = cell.lock();
        let mut atlas = ground.atlas();
        let pages = u64::from(ask.units).div_ceil(PAGE_UNITS) as u32;
        let Books { arena, runs, frames, .. } = &mut *books;
        if !arena.choose_frames(pages, &*atlas, |_| true, runs) {
            return Found::Nothing;
        }
        if let [only] = runs[..] {
            return Found::Taken(arena.take_from(only.piece, ask.units));
        }
        let key = list_frames(&atlas, runs, frames);
        if let Some(known) = atlas.folds().find(frames, key) {
            let (runs, frames) = (std::mem::take(runs), std::mem::take(frames));
            let taken = move_in(&mut books, &mut atlas, cell, &runs, &frames, known, now, ask);
            (books.runs, books.frames) = (runs, frames);
            books.happened.folds_reused += 1;
            return Found::Taken(taken);
        }
        let Some(new) = atlas.new_fold(frames, key) else { return Found::NoAddresses };
        arena.hold(runs);
        let handles = frames.iter().filter_map(|frame| atlas.handle(*frame)).collect();
        Found::Unmapped { new, handles, runs: runs.clone(), frames: frames.clone() }
    }
}

/// Moves the home of chosen frames into a mapped fold and takes units from its front.
#[expect(clippy::too_many_arguments, reason = "two books, and the three ways to name the same frames")]
fn move_in(
    books: &mut Books,
    atlas: &mut Atlas,
    cell: &ArenaCell,
    runs: &[Run],
    frames: &[u32],
    fold: NewFold,
    now: Stamp,
    ask: Ask,
) -> Taken {
    let stamp = books.arena.part_with(runs, now.number as u32);
    atlas.move_home(frames, fold.fold, fold.run.first_page, cell.number, now);
    books.away = true;
    let (start, units) = units_of(fold.run);
    let piece = books.arena.extend(start, units as u32, Edge::Apart, stamp, now.number as u32);
    books.arena.take_from(piece, ask.units)
}

/// Lays the frames of an arena, of which nothing is in use, out at their births.
fn go_home(books: &mut Books, atlas: &mut Atlas, arena: u32, now: Stamp) {
    let stamp = now.number as u32;
    books.arena.clear();
    for row in atlas.go_home(arena, now) {
        let edge = if atlas.is_in_lane(arena, row) { Edge::Lane } else { Edge::Apart };
        let (mut start, mut units) = units_of(row);
        while units > 0 {
            let part = units.min(u64::from(u32::MAX) / PAGE_UNITS * PAGE_UNITS);
            books.arena.extend(start, part as u32, edge, stamp, stamp);
            start += part;
            units -= part;
        }
    }
    books.away = false;
    books.happened.homecomings += 1;
}

/// Lists the frames of runs and returns a key for the list: of each run, its ends and its length.
fn list_frames(atlas: &Atlas, runs: &[Run], frames: &mut Vec<u32>) -> u64 {
    frames.clear();
    let mut key = 0_u64;
    for run in runs {
        let from = frames.len();
        atlas.list_frames(run.row, frames);
        let ends = u64::from(frames[from]) << 32 | u64::from(frames[frames.len() - 1]);
        let length = (frames.len() - from) as u64;
        key = (key ^ ends ^ length << 20).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
    key
}

fn units_of(run: PageRun) -> (u64, u64) {
    (u64::from(run.first_page) * PAGE_UNITS, u64::from(run.pages) * PAGE_UNITS)
}
