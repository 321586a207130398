//! Which addresses are taken. One space for all devices of a machine, as with unified addressing.
//!
//! Addresses are not given out again: a pointer that outlived its memory then never points into somebody else's by
//! chance, and a hole after each block catches what runs past its end.

use std::collections::BTreeMap;
use std::ops::Range;

/// Where blocks of memory are placed.
const MEMORY: Range<u64> = 0x7000_0000_0000..0x7f00_0000_0000;
/// Where reservations are placed that name no address; those that do go where they want below `MEMORY`.
const RESERVATIONS: Range<u64> = 0x5000_0000_0000..0x6000_0000_0000;
/// Where a reservation may ask to be.
const CHOSEN: Range<u64> = 0x1_0000..MEMORY.start;
/// At least so many addresses stay free after each block.
const HOLE_BYTES: u64 = 64 << 10;

#[derive(Debug)]
pub(crate) struct AddressSpace {
    next_memory: u64,
    next_reservation: u64,
    reserved: BTreeMap<u64, u64>,
}

impl AddressSpace {
    pub(crate) fn new() -> Self {
        Self { next_memory: MEMORY.start, next_reservation: RESERVATIONS.start, reserved: BTreeMap::new() }
    }

    /// Addresses for a block of memory; none when the space is used up.
    pub(crate) fn place(&mut self, bytes: u64, alignment: u64) -> Option<u64> {
        bump(&mut self.next_memory, bytes, alignment, MEMORY.end)
    }

    /// Addresses for a reservation, anywhere; none when the space is used up.
    pub(crate) fn reserve(&mut self, bytes: u64, alignment: u64) -> Option<u64> {
        loop {
            let start = bump(&mut self.next_reservation, bytes, alignment, RESERVATIONS.end)?;
            if self.reserve_at(start, bytes) {
                return Some(start);
            }
        }
    }

    /// These addresses, if nobody has them.
    pub(crate) fn reserve_at(&mut self, start: u64, bytes: u64) -> bool {
        let Some(end) = start.checked_add(bytes) else { return false };
        let inside = start >= CHOSEN.start && end <= CHOSEN.end;
        let taken = self.reserved.range(..end).next_back().is_some_and(|(_, taken_end)| *taken_end > start);
        if inside && !taken {
            self.reserved.insert(start, end);
        }
        inside && !taken
    }

    pub(crate) fn release(&mut self, start: u64) {
        self.reserved.remove(&start);
    }
}

fn bump(next: &mut u64, bytes: u64, alignment: u64, limit: u64) -> Option<u64> {
    let start = next.checked_next_multiple_of(alignment.max(1))?;
    let end = start.checked_add(bytes)?.checked_add(HOLE_BYTES)?;
    if end > limit {
        return None;
    }
    *next = end;
    Some(start)
}
