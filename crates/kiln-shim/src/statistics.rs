//! What the library itself did for the program, as `kiln exec --stats` tells it. What happens rarely is counted, so that a call costs nothing more.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

static STACK_WALKS: AtomicU64 = AtomicU64::new(0);
static STAGING_BLOCKS: AtomicU64 = AtomicU64::new(0);
static STAGING_BYTES: AtomicU64 = AtomicU64::new(0);

/// The counts of a process.
#[derive(Serialize)]
pub(crate) struct Statistics {
    /// Stacks that were walked to know from where the program called.
    stack_walks: u64,
    /// Blocks of pinned memory that were made for copies of pageable memory, and their bytes.
    staging_blocks: u64,
    staging_bytes: u64,
}

pub(crate) fn count_stack_walk() {
    STACK_WALKS.fetch_add(1, Ordering::Relaxed);
}

pub(crate) fn count_staging_block(bytes: u64) {
    STAGING_BLOCKS.fetch_add(1, Ordering::Relaxed);
    STAGING_BYTES.fetch_add(bytes, Ordering::Relaxed);
}

/// The counts of this process until now.
pub(crate) fn counts() -> Statistics {
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    Statistics {
        stack_walks: count(&STACK_WALKS),
        staging_blocks: count(&STAGING_BLOCKS),
        staging_bytes: count(&STAGING_BYTES),
    }
}
