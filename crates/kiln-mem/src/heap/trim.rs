//! Giving memory back to the device.

use super::Heap;
use super::arena::number_of;
use super::arena_cell::ArenaCell;
use super::atlas::PageRun;
use super::chunk_ground::ChunkGround;
use super::ground::Ground;
use super::page_ground::{PAGE_BYTES, PageGround};
use crate::error::Result;
use crate::ladder::Relief;
use crate::stamp::Stamp;

/// What is to be made room for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Room {
    /// Pages of addresses.
    pub(super) pages: u64,
    /// Frames that are mapped.
    pub(super) frames: u64,
}

impl Heap {
    /// Gives back what holds nothing and what no work uses any more.
    pub(super) fn release_idle(&self) -> Result<Relief> {
        match &self.ground {
            Ground::Pages(ground) => {
                self.release_folds(ground, Room { pages: u64::MAX, frames: u64::MAX })?;
                let mut released = 0;
                for cell in self.arenas.iter() {
                    released += self.release_frames(ground, cell)?;
                }
                Ok(Relief::released(released))
            }
            Ground::Chunks(ground) => self.release_chunks(ground),
        }
    }

    /// Takes out the mappings of folds that are nobody's home, those first that were not used for longest, until there is room.
    pub(super) fn release_folds(&self, ground: &PageGround, mut room: Room) -> Result<()> {
        let idle = ground.atlas().folds().idle();
        for fold in idle {
            if room.pages == 0 && room.frames == 0 {
                break;
            }
            // It may have become a home since, or be another one by now; then that one is idle or it stays.
            let idle = ground.atlas().folds().take_idle(fold, |stamp| self.order.is_complete(stamp));
            let Some(idle) = idle else { continue };
            if idle.frames > 0 {
                ground.unmap(idle.run)?;
            }
            ground.atlas().folds().return_addresses(idle.run);
            self.happened.folds_unmapped.note();
            room.pages = room.pages.saturating_sub(u64::from(idle.run.pages));
            room.frames = room.frames.saturating_sub(idle.frames);
        }
        Ok(())
    }

    fn release_frames(&self, ground: &PageGround, cell: &ArenaCell) -> Result<u64> {
        let now = self.now(cell);
        let taken = {
            let mut books = cell.visit();
            let mut atlas = ground.atlas();
            let mut runs = std::mem::take(&mut books.runs);
            let ready = |stamp| self.is_done(now, stamp);
            // There are never as many pages; what is wanted is all there are.
            books.arena.choose_frames(u32::MAX, &*atlas, ready, &mut runs);
            books.arena.part_with(&runs, now.number as u32);
            let taken: Vec<_> = runs.iter().flat_map(|run| atlas.take_frames(run.row, now)).collect();
            books.runs = runs;
            taken
        };
        let mut released = 0;
        for (handle, places) in taken {
            let bytes = places.first().map_or(0, |place: &PageRun| u64::from(place.pages) * PAGE_BYTES);
            for place in places {
                ground.unmap(place)?;
            }
            ground.destroy(handle, bytes)?;
            released += bytes;
        }
        Ok(released)
    }

    fn release_chunks(&self, ground: &ChunkGround) -> Result<Relief> {
        let mut released = 0;
        for (start, units) in ground.extents() {
            let parted = self.arenas.iter().any(|cell| {
                let now = self.now(cell);
                cell.visit().arena.part_with_extent(start, units, |stamp| self.is_done(now, stamp))
            });
            if parted {
                // SAFETY: an arena has just given up exactly these units, which were one free piece of it, and no other has them.
                released += unsafe { ground.release(start) }?;
            }
        }
        Ok(Relief::released(released))
    }

    fn is_done(&self, now: Stamp, stamp: u32) -> bool {
        let stamp = Stamp { stream: now.stream, number: number_of(stamp, now.number) };
        stamp.number == 0 || self.order.is_complete(stamp)
    }
}

impl Drop for Heap {
    /// Gives everything back if no work can use it any more; otherwise it is left to the device.
    fn drop(&mut self) {
        self.empty_all_stocks(|_| true);
        let done = self.arenas.iter().all(|cell| {
            let last = self.now(cell);
            let _ = self.order.refresh(last.stream);
            last.number == 0 || self.order.is_complete(last)
        });
        if !done {
            return;
        }
        match &self.ground {
            Ground::Pages(ground) => ground.release_all(),
            Ground::Chunks(ground) => {
                for (start, _) in ground.extents() {
                    // SAFETY: the heap goes, and with it its arenas and stocks; blocks that are left locate nothing any more.
                    let _ = unsafe { ground.release(start) };
                }
            }
        }
    }
}
