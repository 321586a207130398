//! An arena with its lock, and the blocks that were freed to it but may still be used.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};

use kiln_sync::{Bias, BiasedGuard, BiasedLock};

use super::activity::HappenedHere;
use super::arena::{Arena, Taken};
use super::choose::Run;
use super::size_class::UNIT_BYTES;
use super::streams::stock_limit;
use crate::order::Order;
use crate::stamp::{Stamp, Stamps, StreamKey};

/// What one stream owns, shared by the threads that use the stream.
#[derive(Debug)]
pub(crate) struct ArenaCell {
    /// The arena's number.
    pub(crate) number: u32,
    /// The stream it belongs to.
    stream: AtomicU32,
    /// Owned by the thread that used the stream first, and that may well be the only one.
    books: BiasedLock<Books>,
}

/// After so many turns of other threads an arena has no owner any more.
const PATIENCE: u32 = 64;

/// With no more than this in use, an arena may be about to be empty.
const NEARLY_UNUSED_UNITS: u64 = (32 << 20) / UNIT_BYTES;

/// What the lock protects.
#[derive(Debug)]
pub(crate) struct Books {
    pub(crate) arena: Arena,
    pending: VecDeque<Pending>,
    pending_units: u64,
    /// Whether frames have their homes elsewhere than at their births.
    pub(crate) away: bool,
    /// How many threads map frames of it at the moment, whose pieces they hold.
    pub(crate) mapping: u32,
    /// What was done beside taking and giving.
    pub(crate) happened: HappenedHere,
    /// Room for choosing frames, kept so that choosing allocates nothing.
    pub(crate) runs: Vec<Run>,
    pub(crate) frames: Vec<u32>,
}

/// What was done for a request so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tried {
    Nothing,
    /// The lists of its stream's arena hold nothing for it.
    OwnLists,
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
            mapping: 0,
            happened: HappenedHere::default(),
            runs: Vec::new(),
            frames: Vec::new(),
        };
        Self {
            number,
            stream: AtomicU32::new(stream.number()),
            books: BiasedLock::with_bias(books, Bias::Returns(PATIENCE)),
        }
    }

    #[inline]
    pub(crate) fn stream(&self) -> StreamKey {
        StreamKey::new(self.stream.load(Ordering::Acquire))
    }

    /// Makes it the arena of another stream; the old one is gone and its work is done.
    pub(crate) fn set_stream(&self, stream: StreamKey) {
        self.stream.store(stream.number(), Ordering::Release);
    }

    /// A turn at the books.
    #[inline]
    pub(crate) fn lock(&self) -> BiasedGuard<'_, Books> {
        self.books.lock()
    }

    /// A turn for a thread that looks at the books without using the stream.
    pub(crate) fn visit(&self) -> BiasedGuard<'_, Books> {
        self.books.visit()
    }
}

impl Books {
    /// Takes units, if nothing else has to be looked at first.
    #[inline]
    pub(crate) fn take_common(&mut self, units: u32) -> Result<Taken, Tried> {
        if self.has_chores() {
            return Err(Tried::Nothing);
        }
        self.arena.take(units).ok_or(Tried::OwnLists)
    }

    /// Makes a taken piece free, if there is such a piece and nothing else has to be done then.
    #[inline]
    pub(crate) fn give_common(&mut self, taken: Taken, now: u32) -> bool {
        !self.has_chores() && self.arena.give(taken, now, now)
    }

    /// Whether something is pending, or frames could go home.
    #[inline]
    fn has_chores(&self) -> bool {
        !self.pending.is_empty() || self.away && self.is_nearly_unused()
    }

    /// Whether so little is in use that it may be nothing but what a thread has in stock, and a block that is being freed.
    #[inline]
    pub(crate) fn is_nearly_unused(&self) -> bool {
        let stocked = stock_limit(self.arena.owned_units());
        self.arena.used_units() <= stocked.max(NEARLY_UNUSED_UNITS)
    }

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
