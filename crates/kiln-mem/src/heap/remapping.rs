//! Contiguous remapping: free frames from all over an arena, mapped one after the other.
//!
//! A request for more contiguous pages than are free is met by mapping free frames at new, contiguous addresses. Frames are taken from the
//! smallest free pieces first, so that long runs stay long. If the same frames were mapped in the same order before, that mapping
//! is used again without a driver call. If the same pieces are free as then, the frames are not even searched for (see
//! [`remap_cache`](super::remap_cache)). Why, what it costs and what was tried is in `docs/design/0011-remapping.md`.

use kiln_driver::PagesId;

use super::arena::{Arena, Placement, TakenPiece};
use super::backing::Growth;
use super::locked_arena::{ArenaState, LockedArena};
use super::page_backing::PageBacking;
use super::physical_page_selection::{PAGE_UNITS, SelectedFrames};
use super::physical_pages::{FrameTable, PageRun};
use super::remap_cache::RemapSource;
use super::remap_table::RemapRef;
use super::slow_path::{UnitRequest, growth_of};
use super::trim::RoomNeeded;
use super::{BlockUnits, Heap, ThreadPart};
use crate::error::Result;
use crate::last_use::Stamp;
use crate::try_reserve::HostOutOfMemory;

/// When the window is full, remaps on this part of it are unmapped at once.
const REMAPS_UNMAPPED_PART: u64 = 8;

/// What a search for frames found.
enum FoundFrames {
    /// Not enough frames.
    Nothing,
    /// Enough frames, but no addresses for them, or more are mapped already than may be kept.
    NoRoom(RoomNeeded),
    Taken(TakenPiece),
    /// Enough frames, but the host has no memory for the tables.
    NoTable(HostOutOfMemory),
    /// Enough frames, which have to be mapped first.
    Unmapped {
        new: RemapRef,
        handles: Vec<PagesId>,
        runs: Vec<SelectedFrames>,
        fingerprint: u64,
    },
}

impl Heap {
    /// Takes units out of a remap of free frames; none if there are not enough free frames.
    pub(super) fn remap(&self, cell: &LockedArena, wanted: UnitRequest) -> Result<Option<BlockUnits>> {
        let Some(backing) = self.backing.pages() else { return Ok(None) };
        if wanted.padded_units() < PAGE_UNITS || !wanted.is_plain() {
            return Ok(None);
        }
        let block_units = |taken| Some(BlockUnits { taken, units: wanted.units, arena: cell.number });
        let mut found = self.find_frames(backing, cell, wanted, backing.mapping_limit().frames());
        if let FoundFrames::NoRoom(room) = found {
            self.refresh()?;
            self.release_remaps(backing, room)?;
            // Remaps that work still uses stay mapped. The request is met anyway, with more mapped frames than allowed for a while.
            found = self.find_frames(backing, cell, wanted, u64::MAX);
        }
        match found {
            FoundFrames::Nothing | FoundFrames::NoRoom(_) => Ok(None),
            FoundFrames::NoTable(error) => Err(error.into()),
            FoundFrames::Taken(taken) => Ok(block_units(taken)),
            FoundFrames::Unmapped { new, handles, runs, fingerprint } => {
                let mapped = backing.map_remap(new, &handles);
                let now = self.now(cell);
                let mut state = cell.lock();
                let mut frame_table = backing.frame_table();
                state.mapping -= 1;
                if let Err(error) = mapped {
                    frame_table.remaps().discard(new);
                    state.arena.release_held(&runs, now.number as u32);
                    return if error.is_oom() { Ok(None) } else { Err(error.into()) };
                }
                frame_table.remaps().enter(new.remap);
                cache_remap(&mut frame_table, &state.arena, &runs, fingerprint, new.remap);
                self.activity.remaps_mapped.note();
                self.activity.frames_mapped.add(handles.len() as u64);
                self.activity.pages_mapped.add(u64::from(new.run.pages));
                if self.remap_budget.record(handles.len() as u64, backing.driver().clock().now()) {
                    self.activity.spare_raised.note();
                }
                Ok(block_units(move_into(&mut state, &mut frame_table, &runs, new, now, wanted)))
            }
        }
    }

    /// Adds the frames that are missing and remaps: fewer frames than the whole request. None if that does not help.
    pub(super) fn remap_with_growth(
        &self,
        cell: &LockedArena,
        wanted: UnitRequest,
    ) -> Result<Option<BlockUnits>> {
        let Some(backing) = self.backing.pages().filter(|_| wanted.is_plain()) else { return Ok(None) };
        let missing = self.missing_pages(backing, cell, wanted);
        let growth = growth_of(&cell.lock().arena, cell.number, wanted);
        let missing_units = missing * PAGE_UNITS;
        if missing == 0 || missing_units >= growth.missing_units {
            return Ok(None);
        }
        match self.add(cell, Growth { missing_units, ..growth }) {
            Ok(state) => {
                drop(state);
                self.remap(cell, wanted)
            }
            // The caller goes on to grow by the whole request, and gets that error.
            Err(_) => Ok(None),
        }
    }

    /// Pages that are missing for a remap.
    fn missing_pages(&self, backing: &PageBacking, cell: &LockedArena, wanted: UnitRequest) -> u64 {
        let wanted = u64::from(wanted.units).div_ceil(PAGE_UNITS);
        let mut state = cell.lock();
        let ArenaState { arena, runs, .. } = &mut *state;
        arena.choose_frames(wanted as u32, &*backing.frame_table(), |_| true, runs);
        wanted.saturating_sub(runs.iter().map(|run| u64::from(run.row.pages)).sum())
    }

    /// When nothing of an arena is in use but what this thread has in its cache, its frames return to their original places.
    pub(super) fn reset_layout_if_unused(
        &self,
        part: &ThreadPart,
        cell: &LockedArena,
        state: &mut ArenaState,
    ) {
        if !state.is_nearly_unused() || state.mapping > 0 {
            return;
        }
        if state.arena.taken() > 0 {
            let stream = cell.stream().index() as u32;
            let cached = part.with_cache(|cache| cache.stream(stream).map_or(0, |cache| cache.count()));
            if cached != state.arena.taken() {
                return;
            }
            self.give_cache(part, cell, state);
        }
        if state.arena.taken() == 0
            && let Some(backing) = self.backing.pages()
        {
            let now = self.now(cell);
            let mut frame_table = backing.frame_table();
            reset_layout(state, &mut frame_table, cell.number, now);
        }
    }

    /// The newest submission of an arena's stream.
    pub(super) fn now(&self, cell: &LockedArena) -> Stamp {
        let stream = cell.stream();
        Stamp { stream, number: self.order.latest(stream) }
    }

    /// Searches for frames, and for addresses if no more than `most_frames` would be mapped then.
    fn find_frames(
        &self,
        backing: &PageBacking,
        cell: &LockedArena,
        wanted: UnitRequest,
        most_frames: u64,
    ) -> FoundFrames {
        let now = self.now(cell);
        let mut state = cell.lock();
        let mut frame_table = backing.frame_table();
        let pages = u64::from(wanted.units).div_ceil(PAGE_UNITS) as u32;
        let fingerprint = fingerprint_of(&state, cell, pages);
        if let Some(known) = find_cached(&mut state, &mut frame_table, fingerprint, pages) {
            return FoundFrames::Taken(reuse(&mut state, &mut frame_table, known, now, wanted));
        }
        let ArenaState { arena, runs, frames, mapping, .. } = &mut *state;
        if !arena.choose_frames(pages, &*frame_table, |_| true, runs) {
            return FoundFrames::Nothing;
        }
        if let [only] = runs[..] {
            return FoundFrames::Taken(arena.take_from(only.piece, wanted.units));
        }
        if let Err(error) = arena.try_grow(runs.len() + 1) {
            return FoundFrames::NoTable(error);
        }
        let key = list_frames(&frame_table, runs, frames);
        if let Some(known) = frame_table.remaps().find(frames, key) {
            cache_remap(&mut frame_table, arena, runs, fingerprint, known.remap);
            return FoundFrames::Taken(reuse(&mut state, &mut frame_table, known, now, wanted));
        }
        let count = frames.len() as u64;
        if frame_table.remaps().mapped_frames() + count > most_frames {
            return FoundFrames::NoRoom(RoomNeeded {
                pages: 0,
                frames: count.max(backing.mapping_limit().batch()),
            });
        }
        if let Err(error) = frame_table.remaps().try_grow(pages) {
            return FoundFrames::NoTable(error);
        }
        let Some(new) = frame_table.new_remap(frames, key) else {
            let batch = backing.window_pages() / REMAPS_UNMAPPED_PART;
            return FoundFrames::NoRoom(RoomNeeded { pages: batch.max(u64::from(pages)), frames: 0 });
        };
        arena.hold(runs);
        *mapping += 1;
        let handles = frames.iter().filter_map(|frame| frame_table.handle(*frame)).collect();
        FoundFrames::Unmapped { new, handles, runs: runs.clone(), fingerprint }
    }
}

/// A hash of what the choice of frames depends on: the free pieces, and how many pages are wanted.
fn fingerprint_of(state: &ArenaState, cell: &LockedArena, pages: u32) -> u64 {
    let wanted = u64::from(cell.number) << 32 | u64::from(pages);
    (state.arena.free_lists.fingerprint() ^ wanted).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The remap that was made with this fingerprint before; its frames are then in `runs`.
fn find_cached(
    state: &mut ArenaState,
    frame_table: &mut FrameTable,
    fingerprint: u64,
    pages: u32,
) -> Option<RemapRef> {
    let ArenaState { arena, runs, .. } = state;
    runs.clear();
    let (remap, sources) = frame_table.remaps().remap_cache().find(fingerprint)?;
    for source in sources {
        runs.push(SelectedFrames {
            piece: arena.find_free(source.piece, source.start, source.units)?,
            row: source.row,
        });
    }
    // Two fingerprints may be equal by chance.
    Some(frame_table.remaps().known(remap)).filter(|known| known.run.pages >= pages)
}

/// Notes which pieces the frames of a remap were taken from.
fn cache_remap(
    frame_table: &mut FrameTable,
    arena: &Arena,
    runs: &[SelectedFrames],
    fingerprint: u64,
    remap: u32,
) {
    let sources = runs.iter().map(|run| {
        let piece = &arena.pieces[run.piece];
        RemapSource { start: piece.start(), units: piece.units, piece: run.piece, row: run.row }
    });
    frame_table.remaps().remap_cache().insert(fingerprint, remap, sources);
}

/// Takes units from a remap that is mapped, whose frames are in `runs`.
fn reuse(
    state: &mut ArenaState,
    frame_table: &mut FrameTable,
    remap: RemapRef,
    now: Stamp,
    wanted: UnitRequest,
) -> TakenPiece {
    let runs = std::mem::take(&mut state.runs);
    let taken = move_into(state, frame_table, &runs, remap, now, wanted);
    state.runs = runs;
    state.activity.remaps_reused += 1;
    taken
}

/// Makes a remap the current place of selected frames and takes units from its front.
fn move_into(
    state: &mut ArenaState,
    frame_table: &mut FrameTable,
    runs: &[SelectedFrames],
    remap: RemapRef,
    now: Stamp,
    wanted: UnitRequest,
) -> TakenPiece {
    let stamp = state.arena.remove_pages(runs, now.number as u32);
    frame_table.move_frames(runs, remap.remap, now);
    state.is_remapped = true;
    let (start, units) = units_of(remap.run);
    let piece = state.arena.extend(start, units as u32, Placement::Elsewhere, stamp, now.number as u32);
    state.arena.take_from(piece, wanted.units)
}

/// Returns the frames of an arena, of which nothing is in use, to their original places.
fn reset_layout(state: &mut ArenaState, frame_table: &mut FrameTable, arena: u32, now: Stamp) {
    let stamp = now.number as u32;
    let region = frame_table.region(arena);
    let rows = frame_table.reset_layout(arena, state.arena.free_pages(), now);
    state.arena.clear();
    for row in rows {
        let edge = if region.contains(&row.first_page) { Placement::RegionEnd } else { Placement::Elsewhere };
        let (mut start, mut units) = units_of(*row);
        while units > 0 {
            let part = units.min(u64::from(u32::MAX) / PAGE_UNITS * PAGE_UNITS);
            state.arena.extend(start, part as u32, edge, stamp, stamp);
            start += part;
            units -= part;
        }
    }
    state.is_remapped = false;
    state.activity.layout_resets += 1;
}

/// Lists the frames of runs and returns a key for the list: of each run, its ends and its length.
fn list_frames(frame_table: &FrameTable, runs: &[SelectedFrames], frames: &mut Vec<u32>) -> u64 {
    frames.clear();
    let mut key = 0_u64;
    for run in runs {
        let from = frames.len();
        frame_table.list_frames(run.row, frames);
        let ends = u64::from(frames[from]) << 32 | u64::from(frames[frames.len() - 1]);
        let length = (frames.len() - from) as u64;
        key = (key ^ ends ^ length << 20).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
    key
}

fn units_of(run: PageRun) -> (u64, u64) {
    (u64::from(run.first_page) * PAGE_UNITS, u64::from(run.pages) * PAGE_UNITS)
}
