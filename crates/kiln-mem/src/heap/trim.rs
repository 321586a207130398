//! Giving memory back to the device.

use super::Heap;
use super::arena::number_of;
use super::backing::Backing;
use super::chunk_backing::ChunkBacking;
use super::locked_arena::LockedArena;
use super::page_backing::{PAGE_BYTES, PageBacking};
use super::physical_pages::PageRun;
use crate::error::Result;
use crate::last_use::Stamp;
use crate::reclaim::Reclaimed;

/// What has to be unmapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RoomNeeded {
    /// Pages of addresses.
    pub(super) pages: u64,
    /// Frames that are mapped.
    pub(super) frames: u64,
}

impl Heap {
    /// Gives memory back to the device that holds no block and that no work uses any more.
    pub(super) fn release_idle(&self) -> Result<Reclaimed> {
        match &self.backing {
            Backing::Pages(backing) => {
                self.release_remaps(backing, RoomNeeded { pages: u64::MAX, frames: u64::MAX })?;
                let mut released = 0;
                for cell in self.arenas.iter() {
                    released += self.release_frames(backing, cell)?;
                }
                Ok(Reclaimed::released(released))
            }
            Backing::Chunks(backing) => self.release_chunks(backing),
        }
    }

    /// Unmaps unused remaps, those first that became unused longest ago, until there is room.
    pub(super) fn release_remaps(&self, backing: &PageBacking, mut room: RoomNeeded) -> Result<()> {
        let idle = backing.frame_table().remaps().idle();
        for remap in idle {
            if room.pages == 0 && room.frames == 0 {
                break;
            }
            // It may be in use again, or be another remap by now; then that one is unused or it stays.
            let idle = backing.frame_table().remaps().take_idle(remap, |stamp| self.order.is_complete(stamp));
            let Some(idle) = idle else { continue };
            if idle.frames > 0 {
                backing.unmap(idle.run)?;
            }
            backing.frame_table().remaps().return_addresses(idle.run);
            self.activity.remaps_unmapped.note();
            room.pages = room.pages.saturating_sub(u64::from(idle.run.pages));
            room.frames = room.frames.saturating_sub(idle.frames);
        }
        Ok(())
    }

    fn release_frames(&self, backing: &PageBacking, cell: &LockedArena) -> Result<u64> {
        let now = self.now(cell);
        let taken = {
            let mut state = cell.visit();
            let mut frame_table = backing.frame_table();
            let mut runs = std::mem::take(&mut state.runs);
            let ready = |stamp| self.is_done(now, stamp);
            // There are never as many pages: this selects all of them.
            state.arena.choose_frames(u32::MAX, &*frame_table, ready, &mut runs);
            state.arena.remove_pages(&runs, now.number as u32);
            let taken: Vec<_> = runs.iter().flat_map(|run| frame_table.take_frames(run.row, now)).collect();
            state.runs = runs;
            taken
        };
        let mut released = 0;
        for (handle, places) in taken {
            let bytes = places.first().map_or(0, |place: &PageRun| u64::from(place.pages) * PAGE_BYTES);
            for place in places {
                backing.unmap(place)?;
            }
            backing.destroy(handle, bytes)?;
            released += bytes;
        }
        Ok(released)
    }

    fn release_chunks(&self, backing: &ChunkBacking) -> Result<Reclaimed> {
        let mut released = 0;
        for (start, units) in backing.extents() {
            let parted = self.arenas.iter().any(|cell| {
                let now = self.now(cell);
                cell.visit().arena.remove_extent(start, units, |stamp| self.is_done(now, stamp))
            });
            if parted {
                // SAFETY: an arena has just given up exactly these units, which were one free piece of it, and no other has them.
                released += unsafe { backing.release(start) }?;
            }
        }
        Ok(Reclaimed::released(released))
    }

    fn is_done(&self, now: Stamp, stamp: u32) -> bool {
        let stamp = Stamp { stream: now.stream, number: number_of(stamp, now.number) };
        stamp.number == 0 || self.order.is_complete(stamp)
    }
}

impl Drop for Heap {
    /// Frees everything if no work can use it any more; otherwise it is left to the device.
    fn drop(&mut self) {
        self.empty_all_caches(|_| true);
        let done = self.arenas.iter().all(|cell| {
            let last = self.now(cell);
            let _ = self.order.refresh(last.stream);
            last.number == 0 || self.order.is_complete(last)
        });
        if !done {
            return;
        }
        match &self.backing {
            Backing::Pages(backing) => backing.release_all(),
            Backing::Chunks(backing) => {
                for (start, _) in backing.extents() {
                    // SAFETY: the heap goes, and with it its arenas and caches; blocks that are left locate nothing any more.
                    let _ = unsafe { backing.release(start) };
                }
            }
        }
    }
}
