//! Vector clocks: up to which submission of each stream a stream, or the host, is already ordered after.

use crate::stamp::Stamp;
use crate::stream_key::{MAX_STREAMS, StreamKey};
use crate::sync_shim::{AtomicU64, Ordering};

/// For each stream, the latest submission that is ordered before. A vector clock.
#[repr(C)]
#[derive(Debug)]
pub struct StreamClock {
    /// All numbers from here on are 0. A program with three streams is not to pay for sixty-four.
    used: usize,
    numbers: [u64; MAX_STREAMS],
}

impl Default for StreamClock {
    fn default() -> Self {
        Self { numbers: [0; MAX_STREAMS], used: 0 }
    }
}

impl Clone for StreamClock {
    fn clone(&self) -> Self {
        Self { numbers: self.numbers, used: self.used }
    }

    fn clone_from(&mut self, other: &Self) {
        let used = self.used.max(other.used);
        self.numbers[..used].copy_from_slice(&other.numbers[..used]);
        self.used = other.used;
    }
}

impl StreamClock {
    /// Whether a stamp is ordered before.
    #[inline]
    pub fn covers(&self, stamp: Stamp) -> bool {
        self.at(stamp.stream) >= stamp.number
    }

    /// The latest submission of a stream that is ordered before.
    #[inline]
    pub fn at(&self, stream: StreamKey) -> u64 {
        self.numbers[stream.index()]
    }

    /// Learns that a stamp is ordered before.
    #[inline]
    pub fn learn(&mut self, stamp: Stamp) {
        let index = stamp.stream.index();
        self.numbers[index] = stamp.number.max(self.numbers[index]);
        self.used = self.used.max(index + 1);
    }

    /// Learns everything another clock knows. Of two clocks of one stream the later knows all the earlier does, so that this brings an
    /// old copy up to date, too, and by single numbers: a copy would be a call, and would read in vectors what was written in words.
    #[inline]
    pub fn join(&mut self, other: &Self) {
        for (known, new) in self.numbers.iter_mut().zip(&other.numbers[..other.used]) {
            *known = (*new).max(*known);
        }
        self.used = self.used.max(other.used);
    }
}

/// What is known to be done, for every stream. Shared by all threads; it only grows.
///
/// Relaxed reads are enough: a number that is seen late costs a wait that was not needed, never one that was.
#[derive(Debug)]
pub struct HostClock([AtomicU64; MAX_STREAMS]);

impl Default for HostClock {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl HostClock {
    /// Whether a stamp is known to be done.
    #[inline]
    pub fn covers(&self, stamp: Stamp) -> bool {
        self.0[stamp.stream.index()].load(Ordering::Acquire) >= stamp.number
    }

    /// The latest submission of a stream that is known to be done.
    pub fn at(&self, stream: StreamKey) -> u64 {
        self.0[stream.index()].load(Ordering::Acquire)
    }

    /// Learns that a stamp is done. All learning and all snapshots have one order, also with other things that a thread reads after it has learned.
    pub fn learn(&self, stamp: Stamp) {
        self.0[stamp.stream.index()].fetch_max(stamp.number, Ordering::SeqCst);
    }

    /// What is known now.
    pub fn snapshot(&self) -> StreamClock {
        let mut clock = StreamClock { used: MAX_STREAMS, ..StreamClock::default() };
        for (known, here) in clock.numbers.iter_mut().zip(&self.0) {
            *known = here.load(Ordering::SeqCst);
        }
        clock
    }

    /// Learns that everything a clock knows is done.
    pub fn join(&self, clock: &StreamClock) {
        for (known, new) in self.0.iter().zip(clock.numbers) {
            if new > known.load(Ordering::Relaxed) {
                known.fetch_max(new, Ordering::SeqCst);
            }
        }
    }
}
