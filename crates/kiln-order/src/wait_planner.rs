//! Computes which submissions a new one must wait for, from access histories and clocks.
//!
//! A stamp costs nothing if it is on the same stream, already ordered before (the stream's clock), or known to be done
//! (the host's clock). What is left is at most one stamp per stream, arranged so that a wait that brings others along
//! comes first.

use crate::stamp::Stamp;
use crate::stream_key::{MAX_STREAMS, StreamKey};
use crate::vector_clock::{HostClock, StreamClock};

/// The waits of one submission: at most one per stream, the latest. Kept with its stream and used again, so that planning
/// allocates nothing.
#[repr(C)]
#[derive(Debug)]
pub struct Waits {
    len: usize,
    items: [Stamp; MAX_STREAMS],
}

impl Default for Waits {
    fn default() -> Self {
        Self { len: 0, items: [Stamp::default(); MAX_STREAMS] }
    }
}

impl Waits {
    /// Forgets all of them.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// What is left to wait for.
    pub fn iter(&self) -> impl Iterator<Item = Stamp> + '_ {
        self.items[..self.len].iter().copied()
    }

    /// The one at a place, counted from 0.
    pub fn at(&self, place: usize) -> Stamp {
        self.items[place]
    }

    /// Whether nothing is.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Adds a stamp unless it costs nothing on this stream.
    #[inline]
    pub fn need(&mut self, stamp: Stamp, own: StreamKey, clock: &StreamClock, host: &HostClock) {
        if stamp.stream == own || clock.covers(stamp) || host.covers(stamp) {
            return;
        }
        self.add(stamp);
    }

    #[inline]
    fn add(&mut self, stamp: Stamp) {
        match self.items[..self.len].iter_mut().find(|known| known.stream == stamp.stream) {
            Some(known) => known.number = known.number.max(stamp.number),
            None => {
                self.items[self.len] = stamp;
                self.len += 1;
            }
        }
    }

    /// Puts the waits that another one is likely to bring along behind it, so that they can be left out once it is known that
    /// they were. `brings(of, stamp)` is a guess whether waiting for `of` orders `stamp` before, too; nothing is dropped here.
    pub fn arrange(&mut self, mut brings: impl FnMut(Stamp, Stamp) -> bool) {
        let mut first = self.len;
        let mut at = 0;
        while at < first {
            let stamp = self.items[at];
            // One that stands behind already brings nothing along, so of two that would each bring the other one stays.
            if (0..first).any(|other| other != at && brings(self.items[other], stamp)) {
                first -= 1;
                self.items.swap(at, first);
            } else {
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(stream: usize, number: u64) -> Stamp {
        Stamp { stream: StreamKey::new(stream).unwrap(), number }
    }

    #[test]
    fn what_is_ordered_already_costs_nothing() {
        let own = StreamKey::new(0).unwrap();
        let (mut clock, host) = (StreamClock::default(), HostClock::default());
        clock.learn(stamp(1, 5));
        host.learn(stamp(2, 8));
        let mut waits = Waits::default();
        for known in [stamp(0, 99), stamp(1, 5), stamp(2, 8), stamp(3, 0)] {
            waits.need(known, own, &clock, &host);
        }
        assert!(waits.is_empty());
        for new in [stamp(1, 6), stamp(3, 2), stamp(1, 7), stamp(2, 9)] {
            waits.need(new, own, &clock, &host);
        }
        assert_eq!(waits.iter().collect::<Vec<_>>(), [stamp(1, 7), stamp(3, 2), stamp(2, 9)]);
    }

    #[test]
    fn what_is_brought_along_stands_behind_what_brings_it() {
        let mut waits = Waits::default();
        let (clock, host) = (StreamClock::default(), HostClock::default());
        for new in [stamp(1, 1), stamp(2, 1), stamp(3, 1)] {
            waits.need(new, StreamKey::new(0).unwrap(), &clock, &host);
        }
        // Each of 1 and 2 would bring the other along.
        waits.arrange(|of, other| of.stream.index() != 3 && other.stream.index() != 3);
        let order: Vec<usize> = waits.iter().map(|wait| wait.stream.index()).collect();
        assert_eq!(order, [3, 2, 1]);
    }
}
