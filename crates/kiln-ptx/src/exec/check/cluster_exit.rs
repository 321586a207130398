//! The end of the shared memory of a block of a cluster: all accesses of other blocks must come before it.

use super::access_mark::{Mark, Reach, Touching};
use super::races::{BlockRaces, Conflict, LaunchRaces, conflict};
use super::shadow_page::PAGE_BYTES;
use super::thread_order::InGrid;
use crate::exec::warp_register::FULL;

/// The most findings about one block.
const MAX_FOUND: usize = 16;

impl LaunchRaces {
    /// Warps of a block.
    pub(crate) fn warps_per_block(&self) -> u64 {
        u64::from(self.warps_per_block)
    }

    /// Forgets all accesses to a part of memory that is not used again.
    pub(crate) fn drop_pages(&self, start: u64, bytes: u64) {
        self.locations().forget(start..start.saturating_add(bytes));
        self.pages.drop_pages(start, bytes);
    }
}

impl BlockRaces<'_> {
    /// Accesses to the memory of a block whose threads have all exited that nothing orders before the exit of any of them, each with its address. Of those
    /// by one instruction the first is told.
    pub(crate) fn touch_exit(&mut self, start: u64, bytes: u64) -> Vec<(Conflict, u64)> {
        let launch = self.launch;
        let mut found: Vec<(Conflict, u64)> = Vec::new();
        // The memory ends with the last thread, so what any of them knows counts.
        self.clocks.unite();
        let Some(epoch) = self.clocks.epoch(0, &launch.epochs, &mut self.epochs) else { return found };
        let mark = Mark::new(epoch, 0, Touching::Write, Reach::Block, 4);
        let number = self.clocks.number(0);
        let order = InGrid { clocks: &self.clocks, launch, warp: 0, number, lane: 0, epoch };
        for page_number in start / PAGE_BYTES..start.saturating_add(bytes).div_ceil(PAGE_BYTES) {
            launch.pages.with_known(page_number, |page| {
                let page = page.hold();
                for word in 0..(PAGE_BYTES / 4) as usize {
                    let Some((old, cause)) = page.touch(word, 15, mark, &order, true) else { continue };
                    let conflict = conflict(&order, 0, old, cause);
                    let is_known = |(known, _): &(Conflict, u64)| known.pc == conflict.pc;
                    if found.len() < MAX_FOUND && !found.iter().any(is_known) {
                        found.push((conflict, page_number * PAGE_BYTES + 4 * word as u64));
                    }
                }
            });
        }
        found
    }
}

impl super::happens_before::Clocks {
    /// Lets the first lane of the first warp know what any thread of the block knows.
    fn unite(&mut self) {
        let mut all = None;
        for warp in 0..self.warps.len() {
            let clock = self.bring(warp, FULL, true);
            all = super::vector_clock::joined_options(all.as_ref(), clock.as_ref());
        }
        if let Some(all) = all {
            self.take_over(0, 1, &all);
        }
    }
}
