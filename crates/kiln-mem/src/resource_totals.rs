//! What a resource holds, in numbers.

use std::ops::Add;

/// What a resource and everything below it hold.
///
/// Live, pending and free bytes are apart: live ones are in use, pending ones were given back but work may
/// still use them, free ones can be handed out now.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Accounting {
    /// Bytes that owners asked for and have not given back.
    pub live_bytes: u64,
    /// Blocks they are in.
    pub live_blocks: u64,
    /// The most `live_bytes` has been; exact for one thread, off by at most 1 MiB, or a 256th of what was live, for each
    /// further one.
    pub peak_live_bytes: u64,
    /// Bytes that were given back while work on other streams could still use them.
    pub pending_bytes: u64,
    /// Bytes taken from the device or the host.
    pub reserved_bytes: u64,
    /// The most `reserved_bytes` has been.
    pub peak_reserved_bytes: u64,
    /// Bytes in caches of threads: free, but found by the thread and stream that freed them first.
    pub cached_bytes: u64,
    /// Bytes of the largest free piece.
    pub largest_free_bytes: u64,
    /// How often a stream was made to wait for another one to get at its memory.
    pub false_dependencies: u64,
}

impl Accounting {
    /// Bytes that cannot be handed out now: live and pending.
    pub fn outstanding_bytes(&self) -> u64 {
        self.live_bytes + self.pending_bytes
    }

    /// Bytes that were taken from the device and are neither live nor pending.
    pub fn free_bytes(&self) -> u64 {
        self.reserved_bytes.saturating_sub(self.outstanding_bytes())
    }

    /// How much of the free memory is outside of the largest piece, between 0 and 1.
    pub fn fragmentation(&self) -> f64 {
        match self.free_bytes() {
            0 => 0.0,
            free => 1.0 - (self.largest_free_bytes.min(free) as f64 / free as f64),
        }
    }
}

impl Add for Accounting {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            live_bytes: self.live_bytes + other.live_bytes,
            live_blocks: self.live_blocks + other.live_blocks,
            peak_live_bytes: self.peak_live_bytes + other.peak_live_bytes,
            pending_bytes: self.pending_bytes + other.pending_bytes,
            reserved_bytes: self.reserved_bytes + other.reserved_bytes,
            peak_reserved_bytes: self.peak_reserved_bytes + other.peak_reserved_bytes,
            cached_bytes: self.cached_bytes + other.cached_bytes,
            largest_free_bytes: self.largest_free_bytes.max(other.largest_free_bytes),
            false_dependencies: self.false_dependencies + other.false_dependencies,
        }
    }
}
