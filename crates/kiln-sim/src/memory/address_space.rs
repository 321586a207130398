//! Which addresses are taken. One space for all devices of a machine, as with unified addressing.
//!
//! Addresses of memory are not given out again: a pointer that outlived its memory then never points into other memory by
//! chance, and a hole after each block catches what runs past its end. Reserved addresses come again when all were given out once.

use std::collections::BTreeMap;
use std::ops::Range;

/// Where blocks of memory are placed.
const MEMORY: Range<u64> = 0x7000_0000_0000..0x7f00_0000_0000;
/// Where reservations are placed that name no address; those that do go where they want below `MEMORY`. As many as a driver has in a row.
const RESERVATIONS: Range<u64> = 0x2000_0000_0000..0x7000_0000_0000;
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
        while let Some(start) = bump(&mut self.next_reservation, bytes, alignment, RESERVATIONS.end) {
            if self.reserve_at(start, bytes) {
                return Some(start);
            }
        }
        let start = self.first_gap(bytes, alignment)?;
        self.reserve_at(start, bytes).then_some(start)
    }

    /// The first addresses that are free again, with a hole after them.
    fn first_gap(&self, bytes: u64, alignment: u64) -> Option<u64> {
        let mut next = RESERVATIONS.start;
        for (taken, taken_end) in &self.reserved {
            let mut here = next;
            if let Some(start) = bump(&mut here, bytes, alignment, *taken) {
                return Some(start);
            }
            next = next.max(taken_end.checked_add(HOLE_BYTES)?);
        }
        bump(&mut next, bytes, alignment, RESERVATIONS.end)
    }

    /// These addresses, if they are free.
    pub(crate) fn reserve_at(&mut self, start: u64, bytes: u64) -> bool {
        let Some(end) = start.checked_add(bytes) else { return false };
        let inside = start >= CHOSEN.start && end <= CHOSEN.end;
        let taken = self.reserved.range(..end).next_back().is_some_and(|(_, taken_end)| *taken_end > start);
        if inside && !taken {
            self.reserved.insert(start, end);
        }
        inside && !taken
    }

    /// How many addresses there are for reservations, and how many are not taken.
    pub(crate) fn free_bytes(&self) -> (u64, u64) {
        let all = RESERVATIONS.end - RESERVATIONS.start;
        let inside = |(start, end): (&u64, &u64)| {
            (*end).min(RESERVATIONS.end).saturating_sub((*start).max(RESERVATIONS.start))
        };
        (all, all.saturating_sub(self.reserved.iter().map(inside).sum()))
    }

    pub(crate) fn release(&mut self, start: u64) {
        self.reserved.remove(&start);
    }
}

/// Whether an address is one that a reservation may ask for.
pub(crate) fn is_chosen(address: u64) -> bool {
    CHOSEN.contains(&address)
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

#[cfg(test)]
mod tests {
    use super::*;

    const TIB: u64 = 1 << 40;
    const PAGE: u64 = 2 << 20;

    #[test]
    fn reserved_addresses_come_again_once_all_were_given_out() {
        let mut space = AddressSpace::new();
        let first = space.reserve(32 * TIB, PAGE).unwrap();
        let second = space.reserve(32 * TIB, PAGE).unwrap();
        assert!(second >= first + 32 * TIB);
        assert_eq!(space.reserve(32 * TIB, PAGE), None, "there are not as many in a row");
        let small = space.reserve(8 * TIB, PAGE).unwrap();
        space.release(first);
        assert_eq!(
            space.reserve(PAGE, PAGE),
            Some((small + 8 * TIB).next_multiple_of(PAGE) + PAGE),
            "new ones first"
        );
        for _ in 0..1000 {
            let again = space.reserve(31 * TIB, PAGE).unwrap();
            assert_eq!(again, first);
            space.release(again);
        }
        assert_eq!(space.reserve(33 * TIB, PAGE), None, "the next one is in the way");
        space.release(second);
        assert_eq!(space.reserve(60 * TIB, PAGE), Some(first));
        assert_eq!(space.reserve(32 * TIB, PAGE), None);
        let taken = 60 * TIB + 8 * TIB + PAGE;
        assert_eq!(space.free_bytes(), (80 * TIB, 80 * TIB - taken));
    }

    #[test]
    fn what_was_chosen_is_gone_around() {
        let mut space = AddressSpace::new();
        assert!(space.reserve_at(RESERVATIONS.start + 10 * TIB, TIB));
        let first = space.reserve(40 * TIB, PAGE).unwrap();
        assert!(first >= RESERVATIONS.start + 11 * TIB, "{first:#x}");
        assert_eq!(
            space.reserve(20 * TIB, PAGE),
            Some((first + 40 * TIB + HOLE_BYTES).next_multiple_of(PAGE))
        );
        assert_eq!(space.reserve(9 * TIB, PAGE), Some(RESERVATIONS.start), "what is left before it");
        assert!(!space.reserve_at(RESERVATIONS.start + 8 * TIB, PAGE));
    }
}
