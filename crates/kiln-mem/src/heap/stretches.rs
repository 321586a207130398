//! Where units lie that are counted through chunks.
//!
//! A heap over chunks counts as if they lay 16 GiB apart: the upper bits of a unit are a number, and each number in use has
//! a stretch of one chunk. Looking a unit up takes no lock, because only its holder does so, and while anybody holds a unit
//! of a number, the number stands for the same stretch. Numbers of chunks that are gone stand for others later; there are
//! too few of them to be used only once by a program that runs for long.

use std::cell::UnsafeCell;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kiln_driver::{DeviceAddress, Place};

use super::size_class::UNIT_BYTES;
use crate::thread::Chunked;

/// Units from one number to the next.
pub(super) const STRIDE_BITS: u32 = 26;
/// Numbers that can be in use at a time. Zero is none of them: it is what a block of no bytes has.
const NUMBERS: u64 = 1 << 14;

/// The numbers, and what each stands for.
pub(super) struct Stretches {
    table: Chunked<Entry>,
    free: Mutex<Free>,
}

/// A stretch of units, and the chunk they lie in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    /// Where the chunk begins.
    pub(super) place: Place,
    pub(super) address: DeviceAddress,
    /// What is added to an offset from the number's start to count from the chunk's, modulo 2^64.
    pub(super) origin: u64,
}

/// What a number stands for; written by [`Stretches::enter`] while nobody holds a unit of the number.
#[derive(Debug)]
struct Entry(UnsafeCell<Option<Stretch>>);

// SAFETY: an entry is written by whoever took its number out of `free`, which one thread at a time can have done, before any of
// its units is handed out; and it is read by holders of such units (`Stretches::find`). A number goes back to `free` when no
// unit of it is held any more. Handing out, giving back and `free` itself go through locks, so each write is ordered before
// the reads that follow and after those before it.
unsafe impl Sync for Entry {}

/// Numbers that stand for nothing: those that came back, in order and in rows, and all from `next` on.
struct Free {
    rows: Vec<Row>,
    next: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Row {
    first: u64,
    count: u64,
}

impl Stretches {
    pub(super) fn new() -> Self {
        Self { table: Chunked::new(), free: Mutex::new(Free { rows: Vec::new(), next: 1 }) }
    }

    /// What the number of a unit stands for; none for number zero.
    ///
    /// # Safety
    /// The unit is held by the caller, having been taken out of an arena that was given it after [`enter`](Self::enter); or
    /// it is unit zero.
    #[inline]
    pub(super) unsafe fn find(&self, unit: u64) -> Option<Stretch> {
        let entry = self.table.get((unit >> STRIDE_BITS) as u32)?;
        // SAFETY: nobody writes the entry while the caller holds the unit, as said above; number zero has no entry.
        unsafe { *entry.0.get() }
    }

    /// Gives numbers to a chunk; returns its first unit, or none if there are no more numbers. It lies `bias` units after the
    /// start of its number.
    pub(super) fn enter(&self, place: Place, address: DeviceAddress, bias: u64, units: u64) -> Option<u64> {
        let count = numbers_of(bias, units);
        let first = self.free().take(count)?;
        for at in 0..count {
            let origin = ((at << STRIDE_BITS) * UNIT_BYTES).wrapping_sub(bias * UNIT_BYTES);
            let entry = self.table.get_or_make((first + at) as u32, || Entry(UnsafeCell::new(None)));
            // SAFETY: the number was taken out of `free`, so nobody else writes its entry and nobody holds a unit of it.
            unsafe { *entry.0.get() = Some(Stretch { place, address, origin }) };
        }
        Some((first << STRIDE_BITS) + bias)
    }

    /// Takes the numbers of a chunk back.
    ///
    /// # Safety
    /// The chunk is in no arena, and nobody holds a unit of it.
    pub(super) unsafe fn leave(&self, start: u64, units: u64) {
        let (first, bias) = (start >> STRIDE_BITS, start & ((1 << STRIDE_BITS) - 1));
        self.free().give(Row { first, count: numbers_of(bias, units) });
    }

    fn free(&self) -> MutexGuard<'_, Free> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn numbers_of(bias: u64, units: u64) -> u64 {
    (bias + units).div_ceil(1 << STRIDE_BITS)
}

impl Free {
    /// The first of so many numbers in a row.
    fn take(&mut self, count: u64) -> Option<u64> {
        if let Some(at) = self.rows.iter().position(|row| row.count >= count) {
            let Row { first, count: row } = self.rows[at];
            if row == count {
                self.rows.remove(at);
            } else {
                self.rows[at] = Row { first: first + count, count: row - count };
            }
            return Some(first);
        }
        let first = self.next;
        self.next = first.checked_add(count).filter(|next| *next <= NUMBERS)?;
        Some(first)
    }

    fn give(&mut self, row: Row) {
        let at = self.rows.partition_point(|other| other.first < row.first);
        self.rows.insert(at, row);
        self.rows.dedup_by(|next, row| {
            let joined = row.first + row.count == next.first;
            if joined {
                row.count += next.count;
            }
            joined
        });
        if let Some(row) = self.rows.pop_if(|row| row.first + row.count == self.next) {
            self.next = row.first;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_in_rows_and_are_never_out_twice() {
        let mut free = Free { rows: Vec::new(), next: 1 };
        let mut random = crate::heap::lcg(3);
        let mut out: Vec<Row> = Vec::new();
        for _ in 0..if cfg!(miri) { 200 } else { 20_000 } {
            let count = 1 + random() % 3;
            if random().is_multiple_of(2) && out.len() < 50 {
                let first = free.take(count).unwrap();
                let overlaps = |row: &Row| row.first < first + count && first < row.first + row.count;
                assert!(first > 0 && !out.iter().any(overlaps));
                out.push(Row { first, count });
            } else if !out.is_empty() {
                free.give(out.swap_remove(random() as usize % out.len()));
            }
        }
        out.drain(..).for_each(|row| free.give(row));
        assert_eq!((free.rows.len(), free.next), (0, 1), "all are as they were");
        assert_eq!(free.take(NUMBERS - 1), Some(1));
        assert_eq!(free.take(1), None);
    }
}
