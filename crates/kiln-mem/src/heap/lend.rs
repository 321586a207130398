//! Memory of other streams.
//!
//! An arena that is short takes whole frames that another one has free, when its stream already runs after whatever
//! used them: they change hands and are from then on as good as its own. Smaller pieces are only lent, and only under
//! pressure: a lent block stays in the books of its arena and goes back there when it is freed.

use std::sync::atomic::Ordering;

use super::allocate::Ask;
use super::arena::{Edge, Taken, number_of};
use super::arena_cell::ArenaCell;
use super::choose::{FrameRow, PAGE_UNITS};
use super::page_ground::PageGround;
use super::{Heap, Ticket};
use crate::error::Result;
use crate::stamp::{Stamp, StreamKey};

impl Heap {
    /// Takes frames over from another arena that has enough of them; `false` if none has.
    pub(super) fn import(&self, cell: &ArenaCell, ask: Ask) -> bool {
        let is_only = self.next_arena.load(Ordering::Relaxed) == 1;
        let Some(ground) = self.ground.pages().filter(|_| !is_only) else { return false };
        let pages = ask.padded_units().div_ceil(PAGE_UNITS) as u32;
        self.others(cell).any(|other| self.import_from(ground, other, cell, pages, false) >= pages)
    }

    /// Takes over whatever frames other arenas have, until there are enough for a request.
    pub(super) fn import_all(&self, cell: &ArenaCell, ask: Ask) {
        let Some(ground) = self.ground.pages() else { return };
        let mut pages = ask.padded_units().div_ceil(PAGE_UNITS) as u32;
        for other in self.others(cell) {
            if pages == 0 {
                break;
            }
            pages = pages.saturating_sub(self.import_from(ground, other, cell, pages, true));
        }
    }

    /// Borrows units from another arena, where the order allows it.
    pub(super) fn lend(&self, cell: &ArenaCell, ask: Ask) -> Option<Ticket> {
        let stream = cell.stream();
        self.others(cell).find_map(|other| {
            let owner = self.now(other);
            self.take_from_other(other, ask, |stamp| self.is_ready(stream, owner, stamp))
                .map(|(ticket, _)| ticket)
        })
    }

    /// Borrows units from another arena and makes the stream wait, on the device, for whatever used them.
    pub(super) fn lend_after_wait(&self, cell: &ArenaCell, ask: Ask) -> Result<Option<Ticket>> {
        let stream = cell.stream();
        let lent = self.others(cell).find_map(|other| {
            let now = self.now(other);
            let (ticket, stamp) = self.take_from_other(other, ask, |_| true)?;
            Some((other, ticket, Stamp { stream: now.stream, number: number_of(stamp, now.number) }))
        });
        let Some((other, ticket, stamp)) = lent else { return Ok(None) };
        if let Err(error) = self.order.wait_on(stream, stamp) {
            let now = stamp.number as u32;
            other.lock().arena.give(ticket.taken, now, now);
            return Err(error.into());
        }
        self.false_dependencies.fetch_add(1, Ordering::Relaxed);
        Ok(Some(ticket))
    }

    fn others<'a>(&'a self, cell: &'a ArenaCell) -> impl Iterator<Item = &'a ArenaCell> {
        self.arenas.iter().filter(|other| other.number != cell.number)
    }

    /// Whether a stream runs after a stamp of another one, whose newest submission is `owner`.
    fn is_ready(&self, stream: StreamKey, owner: Stamp, stamp: u32) -> bool {
        let stamp = Stamp { stream: owner.stream, number: number_of(stamp, owner.number) };
        stamp.number == 0 || self.order.is_ordered(stream, stamp) || self.order.is_complete(stamp)
    }

    fn take_from_other(
        &self,
        other: &ArenaCell,
        ask: Ask,
        mut ready: impl FnMut(u32) -> bool,
    ) -> Option<(Ticket, u32)> {
        if !ask.is_plain() {
            return None;
        }
        let mut books = other.visit();
        books.settle(other.stream(), &*self.order, usize::MAX);
        let mut accepted = 0;
        let taken: Taken = books.arena.take_ready(ask.units, |stamp| {
            accepted = stamp;
            ready(stamp)
        })?;
        Some((Ticket { taken, units: ask.units, arena: other.number }, accepted))
    }

    /// Moves free frames from one arena to another, `pages` of them or, if less will do, as many as there are; returns
    /// the pages that were moved.
    fn import_from(
        &self,
        ground: &PageGround,
        from: &ArenaCell,
        to: &ArenaCell,
        pages: u32,
        less_will_do: bool,
    ) -> u32 {
        let (stream, owner) = (to.stream(), self.now(from));
        let moved: Vec<FrameRow> = {
            let mut books = from.visit();
            let mut atlas = ground.atlas();
            let ready = |stamp| self.is_ready(stream, owner, stamp);
            let mut runs = std::mem::take(&mut books.runs);
            let enough = books.arena.choose_frames(pages, &*atlas, ready, &mut runs);
            if !enough && !less_will_do {
                runs.clear();
            }
            books.arena.part_with(&runs, owner.number as u32);
            let moved: Vec<FrameRow> = runs.iter().map(|run| run.row).collect();
            moved.iter().for_each(|row| atlas.hand_over(*row, to.number));
            books.runs = runs;
            moved
        };
        let now = self.now(to).number as u32;
        let mut books = to.lock();
        for run in &moved {
            let start = u64::from(run.first_page) * PAGE_UNITS;
            books.arena.extend(start, run.pages * PAGE_UNITS as u32, Edge::Apart, now, now);
        }
        moved.iter().map(|run| run.pages).sum()
    }
}
