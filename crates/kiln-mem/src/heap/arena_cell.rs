//! An arena with its lock, and the blocks that were freed to it but may still be used.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::arena::{Arena, Run, Taken};
use crate::order::Order;
use crate::stamp::{Stamp, Stamps, StreamKey};

/// What one stream owns, shared by the threads that use the stream.
#[derive(Debug)]
pub(crate) struct ArenaCell {
    /// The arena's number.
    pub(crate) number: u32,
    /// The stream it belongs to.
    stream: AtomicU32,
    books: Mutex<Books>,
}

/// What the lock protects.
#[derive(Debug)]
pub(crate) struct Books {
    pub(crate) arena: Arena,
    pending: VecDeque<Pending>,
    pending_units: u64,
    /// Whether frames have their homes elsewhere than at their births.
    pub(crate) away: bool,
    /// Room for choosing frames, kept so that choosing allocates nothing.
    pub(crate) runs: Vec<Run>,
    pub(crate) frames: Vec<u32>,
}

/// A freed block that work on other streams may still use.
#[derive(Debug)]
struct Pending {
    taken: Taken,
    units: u32,
    uses: Stamps,
}

impl ArenaCell {
    pub(crate) fn new(number: u32, stream: StreamKey) -> Self {
        let books = Books {
            arena: Arena::new(),
            pending: VecDeque::new(),
            pending_units: 0,
            away: false,
            runs: Vec::new(),
            frames: Vec::new(),
        };
        Self { number, stream: AtomicU32::new(stream.number()), books: Mutex::new(books) }
    }

    pub(crate) fn stream(&self) -> StreamKey {
        StreamKey::new(self.stream.load(Ordering::Acquire))
    }

    /// Makes it the arena of another stream; the old one is gone and its work is done.
    pub(crate) fn set_stream(&self, stream: StreamKey) {
        self.stream.store(stream.number(), Ordering::Release);
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Books {
    pub(crate) fn pending_units(&self) -> u64 {
        self.pending_units
    }

    /// The first use that something pending waits for.
    pub(crate) fn pending_until(&self) -> Option<Stamp> {
        self.pending.front().and_then(|pending| pending.uses.as_slice().first().copied())
    }

    /// Takes a block back that may be used until `uses` are done or ordered before the arena's stream. `false` if there
    /// is no such block.
    pub(crate) fn postpone(&mut self, taken: Taken, units: u32, uses: Stamps) -> bool {
        let known = self.arena.is_taken(taken);
        if known {
            self.pending_units += u64::from(units);
            self.pending.push_back(Pending { taken, units, uses });
        }
        known
    }

    /// Whether nothing is pending.
    pub(crate) fn is_settled(&self) -> bool {
        self.pending.is_empty()
    }

    /// Looks at so many pending blocks, the longest pending first, and frees those not used any more; returns the units.
    pub(crate) fn settle(&mut self, stream: StreamKey, order: &dyn Order, look_at: usize) -> u64 {
        if self.pending.is_empty() {
            return 0;
        }
        let now = order.latest(stream) as u32;
        let mut freed = 0;
        for _ in 0..self.pending.len().min(look_at) {
            let Some(mut pending) = self.pending.pop_front() else { break };
            pending.uses.retain(|stamp| !order.is_ordered(stream, stamp));
            if pending.uses.is_empty() {
                self.pending_units -= u64::from(pending.units);
                freed += u64::from(pending.units);
                self.arena.give(pending.taken, now, now);
            } else {
                self.pending.push_back(pending);
            }
        }
        freed
    }
}
