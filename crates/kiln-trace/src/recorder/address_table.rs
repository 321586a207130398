//! Numbers for things that live as long as the program, by their address.
//!
//! Who launches the same kernel from the same line again finds its number with one look into a table, which takes no lock. The first
//! time, it is entered under one. Numbers begin at 1; 0 stands for nothing.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Places of the table; a power of two.
const PLACES: usize = 4096;
/// Places that are looked at for one address. What finds no room in them is looked up under the lock.
const PROBES: usize = 16;

/// What is entered: where it stands, and how long it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) start: usize,
    pub(super) length: usize,
}

/// The numbers of things of one kind.
pub(super) struct AddressTable<T: 'static> {
    places: [Place; PLACES],
    known: Mutex<Vec<(Address, T)>>,
}

struct Place {
    /// 0 while the place is free. Written last.
    start: AtomicUsize,
    length: AtomicUsize,
    number: AtomicU32,
}

impl Place {
    const fn free() -> Self {
        Self { start: AtomicUsize::new(0), length: AtomicUsize::new(0), number: AtomicU32::new(0) }
    }
}

impl<T: Copy> AddressTable<T> {
    pub(super) const fn new() -> Self {
        Self { places: [const { Place::free() }; PLACES], known: Mutex::new(Vec::new()) }
    }

    /// The number of what stands at an address for as long as the program runs.
    #[inline]
    pub(super) fn number(&'static self, address: Address, thing: T) -> u32 {
        for place in self.probed(address) {
            let start = place.start.load(Ordering::Acquire);
            if start == address.start && place.length.load(Ordering::Relaxed) == address.length {
                return place.number.load(Ordering::Relaxed);
            }
            if start == 0 {
                break;
            }
        }
        self.enter(address, thing)
    }

    /// What has a number.
    pub(super) fn get(&'static self, number: u32) -> Option<T> {
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        self.known().get(index).map(|(_, thing)| *thing)
    }

    #[inline]
    fn probed(&'static self, address: Address) -> impl Iterator<Item = &'static Place> {
        // Fibonacci hashing: neighbours go to places far apart.
        let hash = (address.start as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let first = hash as usize;
        (0..PROBES).filter_map(move |probe| self.places.get((first + probe) % PLACES))
    }

    #[cold]
    #[inline(never)]
    fn enter(&'static self, address: Address, thing: T) -> u32 {
        let mut known = self.known();
        if let Some(index) = known.iter().position(|(entered, _)| *entered == address) {
            return index as u32 + 1;
        }
        known.push((address, thing));
        let number = u32::try_from(known.len()).unwrap_or_default();
        let free = |place: &&'static Place| place.start.load(Ordering::Relaxed) == 0;
        if let Some(place) = self.probed(address).find(free) {
            place.length.store(address.length, Ordering::Relaxed);
            place.number.store(number, Ordering::Relaxed);
            place.start.store(address.start, Ordering::Release);
        }
        number
    }

    fn known(&'static self) -> MutexGuard<'static, Vec<(Address, T)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_one_number_however_many_there_are() {
        static TABLE: AddressTable<usize> = AddressTable::new();
        let number = |at: usize| TABLE.number(Address { start: 8 * (at + 1), length: at % 2 }, at);
        let all = if cfg!(miri) { 100 } else { 2 * PLACES };
        let first: Vec<u32> = (0..all).map(number).collect();
        let again: Vec<u32> = (0..all).map(number).collect();
        assert_eq!(first, again);
        for (at, number) in first.iter().enumerate() {
            assert_eq!(TABLE.get(*number), Some(at));
        }
        assert_eq!((TABLE.get(0), TABLE.get(u32::MAX)), (None, None));
        let (short, long) = (Address { start: 8, length: 7 }, Address { start: 8, length: 9 });
        assert_ne!(TABLE.number(short, 1), TABLE.number(long, 2), "one begins where the other does");
    }
}
