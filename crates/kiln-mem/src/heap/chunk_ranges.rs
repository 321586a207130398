//! Where the units of a heap over chunks lie.
//!
//! Such a heap counts as if its chunks were 16 GiB apart: the upper bits of a unit are a number, and each number in use stands for a range of
//! one chunk. Looking a unit up takes no lock: only the holder of a unit looks it up, and as long as a unit is held, its number stands for the
//! same range. Numbers of freed chunks are used again, because a program that runs for long would use them up.

use std::cell::UnsafeCell;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kiln_driver::{DeviceAddress, Place};
use kiln_sync::ChunkedTable;

use super::free_runs::FreeRuns;
use super::physical_pages::PageRun;
use super::size_class::UNIT_BYTES;

/// Units from one number to the next.
pub(super) const STRIDE_BITS: u32 = 26;
/// Numbers that can be in use at a time. Number zero is for blocks of no bytes.
const NUMBERS: u32 = 1 << 14;

/// The numbers, and what each stands for.
pub(super) struct ChunkRanges {
    table: ChunkedTable<RangeEntry>,
    free: Mutex<FreeNumbers>,
}

/// A range of units, and the chunk they lie in.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChunkRange {
    /// Where the chunk begins.
    pub(super) place: Place,
    pub(super) address: DeviceAddress,
    /// What is added to an offset from the number's start to count from the chunk's, modulo 2^64.
    pub(super) origin: u64,
}

/// What a number stands for; written by [`ChunkRanges::enter`] while no unit of the number is held.
#[derive(Debug)]
struct RangeEntry(UnsafeCell<Option<ChunkRange>>);

// SAFETY: an entry is written by the thread that took its number out of `free`, which only one thread can have done, before any of
// its units is handed out; and it is read by holders of such units (`ChunkRanges::find`). A number goes back to `free` when no
// unit of it is held any more. Handing out, giving back and `free` itself go through locks, so each write is ordered before
// the reads that follow and after those before it.
unsafe impl Sync for RangeEntry {}

/// Numbers that are not in use: those that were returned, and all from `next` on. Contiguous numbers are kept as contiguous pages are.
struct FreeNumbers {
    back: FreeRuns,
    next: u32,
}

impl ChunkRanges {
    pub(super) fn new() -> Self {
        Self {
            table: ChunkedTable::new(),
            free: Mutex::new(FreeNumbers { back: FreeRuns::default(), next: 1 }),
        }
    }

    /// What the number of a unit stands for; none for number zero.
    ///
    /// # Safety
    /// The unit is held by the caller, having been taken out of an arena that was given it after [`enter`](Self::enter); or
    /// it is unit zero.
    #[inline]
    pub(super) unsafe fn find(&self, unit: u64) -> Option<ChunkRange> {
        let entry = self.table.get((unit >> STRIDE_BITS) as u32)?;
        // SAFETY: the entry is not written while the caller holds the unit, as said above; number zero has no entry.
        unsafe { *entry.0.get() }
    }

    /// Gives numbers to a chunk; returns its first unit, or none if there are no more numbers. It lies `bias` units after the
    /// start of its number.
    pub(super) fn enter(&self, place: Place, address: DeviceAddress, bias: u64, units: u64) -> Option<u64> {
        let count = numbers_of(bias, units);
        let first = u64::from(self.free().take(u32::try_from(count).ok()?)?.first_page);
        for at in 0..count {
            let origin = ((at << STRIDE_BITS) * UNIT_BYTES).wrapping_sub(bias * UNIT_BYTES);
            let entry = self.table.get_or_make((first + at) as u32, || RangeEntry(UnsafeCell::new(None)));
            // SAFETY: the number was taken out of `free`, so no other thread writes its entry and no unit of it is held.
            unsafe { *entry.0.get() = Some(ChunkRange { place, address, origin }) };
        }
        Some((first << STRIDE_BITS) + bias)
    }

    /// Takes the numbers of a chunk back.
    ///
    /// # Safety
    /// The chunk is in no arena, and no unit of it is held.
    pub(super) unsafe fn leave(&self, start: u64, units: u64) {
        let (first, bias) = (start >> STRIDE_BITS, start & ((1 << STRIDE_BITS) - 1));
        // They were taken as these same numbers, which fit.
        self.free().give(PageRun { first_page: first as u32, pages: numbers_of(bias, units) as u32 });
    }

    fn free(&self) -> MutexGuard<'_, FreeNumbers> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn numbers_of(bias: u64, units: u64) -> u64 {
    (bias + units).div_ceil(1 << STRIDE_BITS)
}

impl FreeNumbers {
    /// `count` contiguous numbers.
    fn take(&mut self, count: u32) -> Option<PageRun> {
        if let Some(run) = self.back.take(count) {
            return Some(run);
        }
        let first_page = self.next;
        self.next = first_page.checked_add(count).filter(|next| *next <= NUMBERS)?;
        Some(PageRun { first_page, pages: count })
    }

    fn give(&mut self, run: PageRun) {
        self.back.add(run);
        if let Some(last) = self.back.take_last_before(self.next) {
            self.next = last.first_page;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returned_numbers_join_and_no_number_is_in_use_twice() {
        let mut free = FreeNumbers { back: FreeRuns::default(), next: 1 };
        let mut random = crate::heap::lcg(3);
        let mut out: Vec<PageRun> = Vec::new();
        for _ in 0..if cfg!(miri) { 200 } else { 20_000 } {
            let count = 1 + random() as u32 % 3;
            if random().is_multiple_of(2) && out.len() < 50 {
                let run = free.take(count).unwrap();
                let overlaps = |other: &PageRun| other.first_page < run.end() && run.first_page < other.end();
                assert!(run.pages == count && run.first_page > 0 && !out.iter().any(overlaps));
                out.push(run);
            } else if !out.is_empty() {
                free.give(out.swap_remove(random() as usize % out.len()));
            }
        }
        out.drain(..).for_each(|run| free.give(run));
        assert_eq!(free.next, 1, "all are as they were");
        assert_eq!(free.take(NUMBERS - 1).map(|run| run.first_page), Some(1));
        assert_eq!(free.take(1), None);
    }
}
