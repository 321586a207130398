//! A counter that one thread writes and all may read.

use std::sync::atomic::{AtomicU64, Ordering};

/// A sum that one thread writes. Adding is a load and a store without an atomic read-modify-write, because no other thread writes. A
/// thread that reads a sum also sees what happened before it was written.
#[derive(Debug, Default)]
pub struct OwnedCounter(AtomicU64);

impl OwnedCounter {
    /// Adds to the sum and returns it. For the one thread that writes; if another one calls it, a count may be lost and nothing else.
    #[inline]
    pub fn add(&self, amount: u64) -> u64 {
        let sum = self.0.load(Ordering::Relaxed).wrapping_add(amount);
        self.set(sum);
        sum
    }

    /// Writes the sum; for the same thread as [`add`](Self::add).
    #[inline]
    pub fn set(&self, sum: u64) {
        self.0.store(sum, Ordering::Release);
    }

    /// The sum.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}
