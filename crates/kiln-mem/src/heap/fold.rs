//! Folding: free frames from all over an arena, mapped in a row.
//!
//! A request for more pages in a row than are free in a row is met by mapping free frames one after the other at new
//! addresses. The frames are chosen from the smallest free pieces, so that long rows stay long. If the same frames
//! were folded in the same order before, the mapping is still there and no driver call is made. If what is free is what
//! was free then, they are not even looked for (see [`habits`](super::habits)).

use kiln_driver::PagesId;

use super::allocate::{Ask, growth_of};
use super::arena::{Arena, Edge, Taken};
use super::arena_cell::{ArenaCell, Books};
use super::atlas::{Atlas, PageRun};
use super::choose::{PAGE_UNITS, Run};
use super::folds::NewFold;
use super::ground::Growth;
use super::habits::Source;
use super::page_ground::PageGround;
use super::trim::Room;
use super::{Heap, Shard, Ticket};
use crate::error::Result;
use crate::stamp::Stamp;

/// When the window is full, this part of it is cleared of folds at once.
const FOLDS_UNMAPPED_PART: u64 = 8;

/// What came of looking for frames.
enum Found {
    /// There are not enough.
    Nothing,
    /// There are, but no addresses for them, or more are mapped already than may be kept.
    NoRoom(Room),
    Taken(Taken),
    /// They have to be mapped first.
    Unmapped {
        new: NewFold,
        handles: Vec<PagesId>,
        runs: Vec<Run>,
        state: u64,
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
        let mut found = self.find_frames(ground, cell, ask, ground.mapping_limit().frames());
        if let Found::NoRoom(room) = found {
            self.refresh()?;
            self.release_folds(ground, room)?;
            // What work still uses stays mapped, and then there are more for a while: the request is met.
            found = self.find_frames(ground, cell, ask, u64::MAX);
        }
        match found {
            Found::Nothing | Found::NoRoom(_) => Ok(None),
            Found::Taken(taken) => Ok(ticket(taken)),
            Found::Unmapped { new, handles, runs, state } => {
                let mapped = ground.map_fold(new, &handles);
                let now = self.now(cell);
                let mut books = cell.lock();
                let mut atlas = ground.atlas();
                books.mapping -= 1;
                if let Err(error) = mapped {
                    atlas.folds().abandon(new);
                    books.arena.let_go(&runs, now.number as u32);
                    return if error.is_oom() { Ok(None) } else { Err(error.into()) };
                }
                atlas.folds().enter(new.fold);
                remember(&mut atlas, &books.arena, &runs, state, new.fold);
                self.happened.folds_mapped.note();
                self.happened.frames_mapped.add(handles.len() as u64);
                if self.patience.strain(handles.len() as u64, ground.driver().clock().now()) {
                    self.happened.spared.note();
                }
                Ok(ticket(move_in(&mut books, &mut atlas, &runs, new, now, ask)))
            }
        }
    }

    /// Adds what is missing for a row and folds: less than the row would be by itself. None if that does not help.
    pub(super) fn fold_with_more(&self, cell: &ArenaCell, ask: Ask) -> Result<Option<Ticket>> {
        let Some(ground) = self.ground.pages().filter(|_| ask.is_plain()) else { return Ok(None) };
        let missing = self.missing_pages(ground, cell, ask);
        let growth = growth_of(&cell.lock().arena, cell.number, ask);
        let missing_units = missing * PAGE_UNITS;
        if missing == 0 || missing_units >= growth.missing_units {
            return Ok(None);
        }
        match self.add(cell, Growth { missing_units, ..growth }) {
            Ok(books) => {
                drop(books);
                self.fold(cell, ask)
            }
            // Whoever asked goes on to ask for more, and is told then.
            Err(_) => Ok(None),
        }
    }

    /// Pages that are missing for a row.
    fn missing_pages(&self, ground: &PageGround, cell: &ArenaCell, ask: Ask) -> u64 {
        let wanted = u64::from(ask.units).div_ceil(PAGE_UNITS);
        let mut books = cell.lock();
        let Books { arena, runs, .. } = &mut *books;
        arena.choose_frames(wanted as u32, &*ground.atlas(), |_| true, runs);
        wanted.saturating_sub(runs.iter().map(|run| u64::from(run.row.pages)).sum())
    }

    /// When nothing of an arena is in use but what this thread has in stock, its frames go back to their births.
    pub(super) fn go_home_if_empty(&self, shard: &Shard, cell: &ArenaCell, books: &mut Books) {
        if !books.is_nearly_unused() || books.mapping > 0 {
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

    /// Looks for frames, and addresses for them if no more than so many would be mapped then.
    fn find_frames(&self, ground: &PageGround, cell: &ArenaCell, ask: Ask, most_frames: u64) -> Found {
        let now = self.now(cell);
        let mut books = cell.lock();
        let mut atlas = ground.atlas();
        let pages = u64::from(ask.units).div_ceil(PAGE_UNITS) as u32;
        let state = state_of(&books, cell, pages);
        if let Some(known) = recall(&mut books, &mut atlas, state, pages) {
            return Found::Taken(reuse(&mut books, &mut atlas, known, now, ask));
        }
        let Books { arena, runs, frames, mapping, .. } = &mut *books;
        if !arena.choose_frames(pages, &*atlas, |_| true, runs) {
            return Found::Nothing;
        }
        if let [only] = runs[..] {
            return Found::Taken(arena.take_from(only.piece, ask.units));
        }
        let key = list_frames(&atlas, runs, frames);
        if let Some(known) = atlas.folds().find(frames, key) {
            remember(&mut atlas, arena, runs, state, known.fold);
            return Found::Taken(reuse(&mut books, &mut atlas, known, now, ask));
        }
        let count = frames.len() as u64;
        if atlas.folds().mapped_frames() + count > most_frames {
            return Found::NoRoom(Room { pages: 0, frames: count.max(ground.mapping_limit().batch()) });
        }
        let Some(new) = atlas.new_fold(frames, key) else {
            let batch = ground.window_pages() / FOLDS_UNMAPPED_PART;
            return Found::NoRoom(Room { pages: batch.max(u64::from(pages)), frames: 0 });
        };
        arena.hold(runs);
        *mapping += 1;
        let handles = frames.iter().filter_map(|frame| atlas.handle(*frame)).collect();
        Found::Unmapped { new, handles, runs: runs.clone(), state }
    }
}

/// What the choice of frames depends on: the pieces that are free, and how many pages are wanted.
fn state_of(books: &Books, cell: &ArenaCell, pages: u32) -> u64 {
    let wanted = u64::from(cell.number) << 32 | u64::from(pages);
    (books.arena.bins.state() ^ wanted).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The fold that was made in this state before; its frames are then in `runs`.
fn recall(books: &mut Books, atlas: &mut Atlas, state: u64, pages: u32) -> Option<NewFold> {
    let Books { arena, runs, .. } = books;
    runs.clear();
    let (fold, sources) = atlas.folds().habits().recall(state)?;
    for source in sources {
        runs.push(Run { piece: arena.find_free(source.piece, source.start, source.units)?, row: source.row });
    }
    // Another request in another state may have looked the same.
    Some(atlas.folds().known(fold)).filter(|known| known.run.pages >= pages)
}

/// Remembers which pieces the frames of a fold were taken from.
fn remember(atlas: &mut Atlas, arena: &Arena, runs: &[Run], state: u64, fold: u32) {
    let sources = runs.iter().map(|run| {
        let piece = &arena.pieces[run.piece];
        Source { start: piece.start(), units: piece.units, piece: run.piece, row: run.row }
    });
    atlas.folds().habits().remember(state, fold, sources);
}

/// Takes units from a fold that is mapped, whose frames are in `runs`.
fn reuse(books: &mut Books, atlas: &mut Atlas, fold: NewFold, now: Stamp, ask: Ask) -> Taken {
    let runs = std::mem::take(&mut books.runs);
    let taken = move_in(books, atlas, &runs, fold, now, ask);
    books.runs = runs;
    books.happened.folds_reused += 1;
    taken
}

/// Moves the home of chosen frames into a mapped fold and takes units from its front.
fn move_in(books: &mut Books, atlas: &mut Atlas, runs: &[Run], fold: NewFold, now: Stamp, ask: Ask) -> Taken {
    let stamp = books.arena.part_with(runs, now.number as u32);
    atlas.move_home(runs, fold.fold, now);
    books.away = true;
    let (start, units) = units_of(fold.run);
    let piece = books.arena.extend(start, units as u32, Edge::Apart, stamp, now.number as u32);
    books.arena.take_from(piece, ask.units)
}

/// Lays the frames of an arena, of which nothing is in use, out at their births.
fn go_home(books: &mut Books, atlas: &mut Atlas, arena: u32, now: Stamp) {
    let stamp = now.number as u32;
    let lane = atlas.lane(arena);
    let rows = atlas.go_home(arena, books.arena.free_pages(), now);
    books.arena.clear();
    for row in rows {
        let edge = if lane.contains(&row.first_page) { Edge::Lane } else { Edge::Apart };
        let (mut start, mut units) = units_of(*row);
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
