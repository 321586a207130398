//! Takes or borrows free memory from the arenas of other streams.
//!
//! An arena that needs memory takes over whole frames that another arena has free, if its stream already runs after the last use of
//! them. Smaller pieces are only borrowed, and only when memory is short: a borrowed block still belongs to its arena and goes back there when
//! it is freed.

use std::sync::atomic::Ordering;

use super::arena::{Placement, TakenPiece, number_of};
use super::locked_arena::LockedArena;
use super::page_backing::PageBacking;
use super::physical_page_selection::{FrameRun, PAGE_UNITS};
use super::slow_path::UnitRequest;
use super::{BlockUnits, Heap};
use crate::error::Result;
use crate::last_use::{Stamp, StreamKey};

impl Heap {
    /// Takes frames over from another arena that has enough of them; `false` if none has.
    pub(super) fn import_frames(&self, cell: &LockedArena, wanted: UnitRequest) -> bool {
        let is_only = self.next_arena.load(Ordering::Relaxed) == 1;
        let Some(backing) = self.backing.pages().filter(|_| !is_only) else { return false };
        let pages = wanted.padded_units().div_ceil(PAGE_UNITS) as u32;
        self.others(cell).any(|other| self.import_frames_from(backing, other, cell, pages, false) >= pages)
    }

    /// Takes over free frames of all other arenas, until there are enough for a request.
    pub(super) fn import_all_frames(&self, cell: &LockedArena, wanted: UnitRequest) {
        let Some(backing) = self.backing.pages() else { return };
        let mut pages = wanted.padded_units().div_ceil(PAGE_UNITS) as u32;
        for other in self.others(cell) {
            if pages == 0 {
                break;
            }
            pages = pages.saturating_sub(self.import_frames_from(backing, other, cell, pages, true));
        }
    }

    /// Borrows units from another arena, where the order allows it.
    pub(super) fn borrow(&self, cell: &LockedArena, wanted: UnitRequest) -> Option<BlockUnits> {
        let stream = cell.stream();
        self.others(cell).find_map(|other| {
            let owner = self.now(other);
            self.take_from_other(other, wanted, |stamp| self.is_ready(stream, owner, stamp))
                .map(|(block_units, _)| block_units)
        })
    }

    /// Borrows units from another arena and makes the stream wait, on the device, for their last use.
    pub(super) fn borrow_after_wait(
        &self,
        cell: &LockedArena,
        wanted: UnitRequest,
    ) -> Result<Option<BlockUnits>> {
        let stream = cell.stream();
        let lent = self.others(cell).find_map(|other| {
            let now = self.now(other);
            let (block_units, stamp) = self.take_from_other(other, wanted, |_| true)?;
            Some((other, block_units, Stamp { stream: now.stream, number: number_of(stamp, now.number) }))
        });
        let Some((other, block_units, stamp)) = lent else { return Ok(None) };
        if let Err(error) = self.order.wait_on(stream, stamp) {
            let now = stamp.number as u32;
            other.lock().arena.give(block_units.taken, now, now);
            return Err(error.into());
        }
        self.false_dependencies.fetch_add(1, Ordering::Relaxed);
        Ok(Some(block_units))
    }

    fn others<'a>(&'a self, cell: &'a LockedArena) -> impl Iterator<Item = &'a LockedArena> {
        self.arenas.iter().filter(|other| other.number != cell.number)
    }

    /// Whether a stream runs after a stamp of another one, whose newest submission is `owner`.
    fn is_ready(&self, stream: StreamKey, owner: Stamp, stamp: u32) -> bool {
        let stamp = Stamp { stream: owner.stream, number: number_of(stamp, owner.number) };
        stamp.number == 0 || self.order.is_ordered(stream, stamp) || self.order.is_complete(stamp)
    }

    fn take_from_other(
        &self,
        other: &LockedArena,
        wanted: UnitRequest,
        mut ready: impl FnMut(u32) -> bool,
    ) -> Option<(BlockUnits, u32)> {
        if !wanted.is_plain() {
            return None;
        }
        let mut state = other.visit();
        state.settle(other.stream(), &*self.order, usize::MAX);
        let mut accepted = 0;
        let taken: TakenPiece = state.arena.take_ready(wanted.units, |stamp| {
            accepted = stamp;
            ready(stamp)
        })?;
        Some((BlockUnits { taken, units: wanted.units, arena: other.number }, accepted))
    }

    /// Moves free frames from one arena to another, `pages` of them or, if less will do, as many as there are; returns
    /// the pages that were moved.
    fn import_frames_from(
        &self,
        backing: &PageBacking,
        from: &LockedArena,
        to: &LockedArena,
        pages: u32,
        less_will_do: bool,
    ) -> u32 {
        let (stream, owner) = (to.stream(), self.now(from));
        let moved: Vec<FrameRun> = {
            let mut state = from.visit();
            let mut frame_table = backing.frame_table();
            let ready = |stamp| self.is_ready(stream, owner, stamp);
            let mut runs = std::mem::take(&mut state.runs);
            let enough = state.arena.choose_frames(pages, &*frame_table, ready, &mut runs);
            if !enough && !less_will_do {
                runs.clear();
            }
            state.arena.remove_pages(&runs, owner.number as u32);
            let moved: Vec<FrameRun> = runs.iter().map(|run| run.row).collect();
            moved.iter().for_each(|row| frame_table.change_owner(*row, to.number));
            state.runs = runs;
            moved
        };
        let now = self.now(to).number as u32;
        let mut state = to.lock();
        for run in &moved {
            let start = u64::from(run.first_page) * PAGE_UNITS;
            state.arena.extend(start, run.pages * PAGE_UNITS as u32, Placement::Elsewhere, now, now);
        }
        moved.iter().map(|run| run.pages).sum()
    }
}
