//! Clocks: what a stream, or the host, is already ordered after.

use super::stamp::{MAX_STREAMS, Stamp, StreamKey};
use super::sync::{AtomicU64, Ordering};

/// For each stream, the latest submission that is ordered before. A vector clock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Clock([u64; MAX_STREAMS]);

impl Default for Clock {
    fn default() -> Self {
        Self([0; MAX_STREAMS])
    }
}

impl Clock {
    /// Whether a stamp is ordered before.
    #[inline]
    pub fn covers(&self, stamp: Stamp) -> bool {
        self.at(stamp.stream) >= stamp.number
    }

    /// The latest submission of a stream that is ordered before.
    pub fn at(&self, stream: StreamKey) -> u64 {
        self.0[stream.index()]
    }

    /// Learns that a stamp is ordered before.
    pub fn learn(&mut self, stamp: Stamp) {
        let known = &mut self.0[stamp.stream.index()];
        *known = stamp.number.max(*known);
    }

    /// Learns everything another clock knows.
    pub fn join(&mut self, other: &Self) {
        for (known, new) in self.0.iter_mut().zip(other.0) {
            *known = new.max(*known);
        }
    }
}

/// What is known to be done, for every stream. Shared by all threads; it only grows.
///
/// Relaxed reads are enough: a number that is seen late costs a wait that was not needed, never one that was.
#[derive(Debug)]
pub struct HostClock([AtomicU64; MAX_STREAMS]);

impl Default for HostClock {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; MAX_STREAMS])
    }
}

impl HostClock {
    /// Whether a stamp is known to be done.
    #[inline]
    pub fn covers(&self, stamp: Stamp) -> bool {
        self.0[stamp.stream.index()].load(Ordering::Acquire) >= stamp.number
    }

    /// Learns that a stamp is done.
    pub fn learn(&self, stamp: Stamp) {
        self.0[stamp.stream.index()].fetch_max(stamp.number, Ordering::AcqRel);
    }

    /// Learns that everything a clock knows is done.
    pub fn join(&self, clock: &Clock) {
        for (known, new) in self.0.iter().zip(clock.0) {
            if new > known.load(Ordering::Relaxed) {
                known.fetch_max(new, Ordering::AcqRel);
            }
        }
    }
}
