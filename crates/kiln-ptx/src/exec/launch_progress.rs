//! How far a launch is.

use std::sync::atomic::{AtomicU64, Ordering};

/// How many blocks of a launch are done, for another thread to show.
#[derive(Debug, Default)]
pub struct LaunchProgress {
    done: AtomicU64,
    total: AtomicU64,
}

impl LaunchProgress {
    /// Blocks that are done, and blocks of the launch that runs or ran last.
    pub fn blocks(&self) -> (u64, u64) {
        (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed))
    }

    /// A launch of so many blocks begins.
    pub(crate) fn begin(&self, blocks: u64) {
        self.done.store(0, Ordering::Relaxed);
        self.total.store(blocks, Ordering::Relaxed);
    }

    /// A block is done.
    pub(crate) fn advance(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }
}
