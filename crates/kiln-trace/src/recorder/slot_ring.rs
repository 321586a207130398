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

    /// Adds a slot, if there is room for it; true if the reader should be woken.
    #[inline(always)]
    pub(super) fn push(&self, writer: &mut RingWriter, slot: [u64; SLOT_WORDS]) -> bool {
        if !self.has_room(writer, 1) {
            return false;
        }
        self.fill(writer.filled, slot);
        self.tell(writer, 1)
    }

    /// Adds two slots that belong together, or none of them; true if the reader should be woken.
    #[cold]
    #[inline(never)]
    pub(super) fn push_two(&self, writer: &mut RingWriter, [first, second]: [[u64; SLOT_WORDS]; 2]) -> bool {
        if !self.has_room(writer, 2) {
            return false;
        }
        self.fill(writer.filled, first);
        self.fill(writer.filled + 1, second);
        self.tell(writer, 2)
    }

    /// Whether there is room for so many; if not, that is counted.
    #[inline(always)]
    fn has_room(&self, writer: &mut RingWriter, slots: u64) -> bool {
        writer.filled + slots - writer.read <= self.places.len() as u64 || self.looks_for_room(writer, slots)
    }

    #[cold]
    #[inline(never)]
    fn looks_for_room(&self, writer: &mut RingWriter, slots: u64) -> bool {
        writer.read = self.read.0.load(Ordering::Acquire);
        if writer.filled + slots - writer.read <= self.places.len() as u64 {
            return true;
        }
        writer.dropped += 1;
        self.dropped.0.store(writer.dropped, Ordering::Release);
        false
    }

    #[inline(always)]
    fn fill(&self, at: u64, [a, b, c, d, e, f, g, h]: [u64; SLOT_WORDS]) {
        let Some(Place([i, j, k, l, m, n, o, p])) = self.place(at) else { return };
        // One by one: a loop over two arrays is one at run time, too, in a build that optimises little.
        i.store(a, Ordering::Relaxed);
        j.store(b, Ordering::Relaxed);
        k.store(c, Ordering::Relaxed);
        l.store(d, Ordering::Relaxed);
        m.store(e, Ordering::Relaxed);
        n.store(f, Ordering::Relaxed);
        o.store(g, Ordering::Relaxed);
        p.store(h, Ordering::Relaxed);
    }

    /// Says that so many more are filled; true if the reader should be woken.
    #[inline(always)]
    fn tell(&self, writer: &mut RingWriter, slots: u64) -> bool {
        writer.filled += slots;
        self.filled.0.store(writer.filled, Ordering::Release);
        let wakes = writer.filled >= writer.wakes_at + self.places.len() as u64 / 2;
        if wakes {
            writer.wakes_at = writer.filled;
        }
        wakes
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

    #[inline(always)]
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
        let mut push = |words: &[u64]| match *words {
            [one] => ring.push(&mut writer, [one; SLOT_WORDS]),
            [one, two] => ring.push_two(&mut writer, [[one; SLOT_WORDS], [two; SLOT_WORDS]]),
            _ => unreachable!(),
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
                    ring.push_two(&mut writer, [[number; SLOT_WORDS]; 2]);
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
