//! A counter that one thread writes and all may read.

use std::sync::atomic::{AtomicU64, Ordering};

/// A sum kept by one thread. Adding is a load and a store, no locked instruction, because nobody else writes. Whoever reads a
/// sum sees, from then on, whatever happened before it was written.
#[derive(Debug, Default)]
pub(crate) struct Tally(AtomicU64);

impl Tally {
    /// Adds to the sum and returns it. Called by the thread whose part of a structure this is; were another one to call it, a count
    /// could be lost, nothing worse.
    #[inline]
    pub(crate) fn add(&self, amount: u64) -> u64 {
        let sum = self.0.load(Ordering::Relaxed).wrapping_add(amount);
        self.set(sum);
        sum
    }

    /// Writes the sum; for the same thread.
    #[inline]
    pub(crate) fn set(&self, sum: u64) {
        self.0.store(sum, Ordering::Release);
    }

    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}
