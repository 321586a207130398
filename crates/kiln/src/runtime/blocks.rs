//! The names and the count of blocks that are alive.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the blocks of one runtime.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    next: AtomicU64,
    live_bytes: AtomicU64,
}

impl Blocks {
    /// A name nobody had before, for a block of that many bytes.
    pub(crate) fn open(&self, bytes: u64) -> u64 {
        self.live_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// A block of that many bytes is gone.
    pub(crate) fn close(&self, bytes: u64) {
        self.live_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Bytes of blocks that are alive.
    pub(crate) fn live_bytes(&self) -> u64 {
        self.live_bytes.load(Ordering::Relaxed)
    }
}
