//! A ring of slots with one writer and one reader, who never wait for each other.
//!
//! The writer fills slots and then says how many there are; the reader reads them and then says how far it came. Neither writes what the
//! other writes, so that no instruction has to be locked. What there is no room for is counted. The slots are plain words that are stored
//! and loaded one by one, so that a wrong use of the ring gives wrong words and nothing worse.

use std::sync::atomic::{AtomicU64, Ordering};

/// Words of a slot.
pub(super) const SLOT_WORDS: usize = 8;

/// One cache line.
#[repr(align(64))]
struct Place([AtomicU64; SLOT_WORDS]);

/// The ring. Its numbers only ever grow.
pub(super) struct SlotRing {
    places: Box<[Place]>,
    /// Slots that were filled.
    filled: Apart,
    /// Slots that were read.
    read: Apart,
    /// Slots for which there was no room.
    dropped: Apart,
}

/// A number in a separate cache line: two threads write two of them.
#[repr(align(128))]
struct Apart(AtomicU64);

/// What the writer knows.
#[derive(Debug, Default)]
pub(super) struct RingWriter {
    filled: u64,
    /// As of the last look; there may be more.
    read: u64,
    dropped: u64,
    /// The reader is to be woken when so many are filled.
    wakes_at: u64,
}

impl SlotRing {
    /// A ring of so many slots, rounded up to a power of two.
    pub(super) fn new(slots: usize) -> Self {
        let place = || Place([const { AtomicU64::new(0) }; SLOT_WORDS]);
        let places = (0..slots.next_power_of_two()).map(|_| place()).collect();
        let zero = || Apart(AtomicU64::new(0));
        Self { places, filled: zero(), read: zero(), dropped: zero() }
    }

    /// Adds slots that belong together, or none of them; true if the reader should be woken.
    #[inline]
    pub(super) fn push(&self, writer: &mut RingWriter, slots: &[[u64; SLOT_WORDS]]) -> bool {
        let room = self.places.len() as u64;
        let filled = writer.filled + slots.len() as u64;
        if filled - writer.read > room {
            writer.read = self.read.0.load(Ordering::Acquire);
            if filled - writer.read > room {
                writer.dropped += 1;
                self.dropped.0.store(writer.dropped, Ordering::Release);
                return false;
            }
        }
        for (at, words) in (writer.filled..).zip(slots) {
            if let Some(place) = self.place(at) {
                place.0.iter().zip(words).for_each(|(cell, word)| cell.store(*word, Ordering::Relaxed));
            }
        }
        writer.filled = filled;
        self.filled.0.store(filled, Ordering::Release);
        if filled >= writer.wakes_at + room / 2 {
            writer.wakes_at = filled;
            return true;
        }
        false
    }

    /// Gives every slot that is there to `each`, which may take the next one, too; how many pushes found no room so far.
    pub(super) fn drain(
        &self,
        mut each: impl FnMut([u64; SLOT_WORDS], &mut dyn FnMut() -> Option<[u64; SLOT_WORDS]>),
    ) -> u64 {
        // Before the slots: what is dropped later is counted the next time.
        let dropped = self.dropped.0.load(Ordering::Acquire);
        let (mut at, filled) = (self.read.0.load(Ordering::Relaxed), self.filled.0.load(Ordering::Acquire));
        let mut next = || {
            let place = self.place(at).filter(|_| at < filled)?;
            at += 1;
            Some(std::array::from_fn(|word| place.0.get(word).map_or(0, |cell| cell.load(Ordering::Relaxed))))
        };
        while let Some(slot) = next() {
            each(slot, &mut next);
        }
        self.read.0.store(at, Ordering::Release);
        dropped
    }

    #[inline]
    fn place(&self, at: u64) -> Option<&Place> {
        // The number of places is a power of two.
        self.places.get(at as usize & (self.places.len() - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drained(ring: &SlotRing) -> (Vec<u64>, u64) {
        let mut words = Vec::new();
        let dropped = ring.drain(|slot, _| words.push(slot[0]));
        (words, dropped)
    }

    #[test]
    fn what_is_pushed_comes_out_in_order_and_what_has_no_room_is_counted() {
        let (ring, mut writer) = (SlotRing::new(4), RingWriter::default());
        let mut push = |words: &[u64]| {
            let slots: Vec<_> = words.iter().map(|word| [*word; SLOT_WORDS]).collect();
            ring.push(&mut writer, &slots)
        };
        assert!(!push(&[1]) && push(&[2]), "half full");
        assert!(!push(&[3]));
        assert!(!push(&[4, 5]), "no room for both");
        assert!(push(&[6]));
        assert!(!push(&[7]));
        assert_eq!(drained(&ring), (vec![1, 2, 3, 6], 2));
        assert!(!push(&[8]) && push(&[9, 10]));
        assert_eq!(drained(&ring), (vec![8, 9, 10], 2));
        assert_eq!(drained(&ring), (vec![], 2));
    }

    #[test]
    fn a_reader_beside_the_writer_sees_whole_slots_in_order() {
        let all = if cfg!(miri) { 300 } else { 300_000 };
        let ring = SlotRing::new(64);
        let (read, dropped) = std::thread::scope(|scope| {
            let writing = scope.spawn(|| {
                let mut writer = RingWriter::default();
                for number in 1..=all {
                    ring.push(&mut writer, &[[number; SLOT_WORDS], [number; SLOT_WORDS]]);
                }
            });
            let (mut read, mut last) = (0, 0);
            loop {
                let is_over = writing.is_finished();
                let dropped = ring.drain(|slot, next| {
                    let second = next().unwrap();
                    assert!(slot[0] > last && slot.iter().chain(&second).all(|word| *word == slot[0]));
                    (read, last) = (read + 1, slot[0]);
                });
                if is_over {
                    return (read, dropped);
                }
            }
        });
        assert_eq!(read + dropped, all);
    }
}
