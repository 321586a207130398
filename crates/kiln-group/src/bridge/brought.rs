//! What a rank brings to a collective between processes.

use std::ops::Range;

/// What a rank brings to a collective: what it calls, and its bytes.
pub(super) struct Brought {
    pub(super) called: String,
    /// Its line; for a transfer what is said of it, with the line.
    pub(super) said: String,
    pub(super) bytes: Vec<u8>,
    /// Which call of its rank it is.
    pub(super) call: u64,
    /// How many pieces of it are in the store.
    pub(super) pieces: u64,
}

impl Brought {
    /// One of its blocks of so many bytes.
    pub(super) fn block(&self, at: u32, bytes: usize) -> &[u8] {
        self.bytes.get(bytes_of(at..at + 1, bytes)).unwrap_or_default()
    }
}

/// Where some blocks are among bytes of which a block has so many.
pub(super) fn bytes_of(blocks: Range<u32>, block: usize) -> Range<usize> {
    blocks.start as usize * block..blocks.end as usize * block
}
