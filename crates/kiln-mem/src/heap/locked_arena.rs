//! An arena with its lock, and the blocks that were freed to it but may still be used.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};

use kiln_sync::{Bias, BiasedGuard, BiasedLock};

use super::arena::{Arena, TakenPiece};
use super::heap_counters::ArenaActivity;
use super::physical_page_selection::SelectedFrames;
use super::size_class::UNIT_BYTES;
use super::stream_arenas::cache_limit;
use super::thread_cache::Batch;
use crate::block::RecordList;
use crate::last_use::{Stamp, Stamps, StreamKey};
use crate::stream_order::Order;
use crate::try_reserve::{HostOutOfMemory, TryGrow};

/// The arena of one stream, shared by the threads that use the stream.
#[derive(Debug)]
pub(crate) struct LockedArena {
    /// The arena's number.
    pub(crate) number: u32,
    /// The stream it belongs to.
    stream: AtomicU32,
    /// Owned by the thread that used the stream first, and that may well be the only one.
    state: BiasedLock<ArenaState>,
}

/// After so many turns of other threads an arena has no owner any more.
const SHARED_TURNS: u32 = 64;

/// With no more than this in use, an arena may be about to be empty.
const NEARLY_UNUSED_UNITS: u64 = (32 << 20) / UNIT_BYTES;

/// What the lock protects.
#[derive(Debug)]
pub(crate) struct ArenaState {
    pub(crate) arena: Arena,
    pending: VecDeque<PendingFree>,
    pending_units: u64,
    /// Whether frames have a current place that is not their original one.
    pub(crate) is_remapped: bool,
    /// How many threads map frames of it at the moment, whose pieces they hold.
    pub(crate) mapping: u32,
    /// Counts of what was done.
    pub(crate) activity: ArenaActivity,
    /// Scratch space for selecting frames, kept so that selecting allocates nothing.
    pub(crate) runs: Vec<SelectedFrames>,
    pub(crate) frames: Vec<u32>,
    /// Records of freed blocks, to be used again.
    pub(crate) records: RecordList,
}

/// Where a request was looked for so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Searched {
    Nothing,
    /// The lists of its stream's arena hold nothing for it.
    OwnLists,
}

/// A freed block that work on other streams may still use.
#[derive(Debug)]
struct PendingFree {
    taken: TakenPiece,
    units: u32,
    uses: Stamps,
}

impl LockedArena {
    pub(crate) fn new(number: u32, stream: StreamKey) -> Self {
        let state = ArenaState {
            arena: Arena::new(),
            pending: VecDeque::new(),
            pending_units: 0,
            is_remapped: false,
            mapping: 0,
            activity: ArenaActivity::default(),
            runs: Vec::new(),
            frames: Vec::new(),
            records: RecordList::new(),
        };
        Self {
            number,
            stream: AtomicU32::new(stream.index() as u32),
            state: BiasedLock::with_bias(state, Bias::Returns(SHARED_TURNS)),
        }
    }

    #[inline]
    pub(crate) fn stream(&self) -> StreamKey {
        // Every number there is that of a key.
        StreamKey::new(self.stream.load(Ordering::Acquire) as usize).unwrap_or_default()
    }

    /// Makes it the arena of another stream; the old one is gone and its work is done.
    pub(crate) fn set_stream(&self, stream: StreamKey) {
        self.stream.store(stream.index() as u32, Ordering::Release);
    }

    /// The state.
    #[inline]
    pub(crate) fn lock(&self) -> BiasedGuard<'_, ArenaState> {
        self.state.lock()
    }

    /// The state, for a thread that does not use the stream.
    pub(crate) fn visit(&self) -> BiasedGuard<'_, ArenaState> {
        self.state.visit()
    }
}

impl ArenaState {
    /// Takes units, if nothing else has to be looked at first.
    #[inline]
    pub(crate) fn take_common(&mut self, units: u32) -> Result<TakenPiece, Searched> {
        if self.has_deferred_work() || !self.arena.can_cut() {
            return Err(Searched::Nothing);
        }
        self.arena.take(units).ok_or(Searched::OwnLists)
    }

    /// Makes a taken piece free, if there is such a piece and nothing else has to be done then.
    #[inline]
    pub(crate) fn give_common(&mut self, taken: TakenPiece, now: u32) -> bool {
        !self.has_deferred_work() && self.arena.give(taken, now, now)
    }

    /// Makes the blocks of a batch free.
    pub(crate) fn give_batch(&mut self, mut batch: Batch, now: u32) {
        self.arena.give_all(batch.as_slice(), now, now);
        while let Some(record) = batch.records.pop() {
            self.records.push(record);
        }
    }

    /// Whether frees are pending, or frames may return to their original places.
    #[inline]
    fn has_deferred_work(&self) -> bool {
        !self.pending.is_empty() || self.is_remapped && self.is_nearly_unused()
    }

    /// Whether so little is in use that it may be nothing but what a thread has in its cache, and a block that is being freed.
    #[inline]
    pub(crate) fn is_nearly_unused(&self) -> bool {
        let cached = cache_limit(self.arena.owned_units());
        self.arena.used_units() <= cached.max(NEARLY_UNUSED_UNITS)
    }

    pub(crate) fn pending_units(&self) -> u64 {
        self.pending_units
    }

    /// The first use that a pending free waits for.
    pub(crate) fn pending_until(&self) -> Option<Stamp> {
        self.pending.front().and_then(|pending| pending.uses.iter().next())
    }

    /// Makes room for one more block that may still be used.
    pub(crate) fn try_grow_pending(&mut self) -> Result<(), HostOutOfMemory> {
        self.pending.try_grow(1)
    }

    /// Takes a block back that may be used until `uses` are done or ordered before the arena's stream. `false` if there
    /// is no such block.
    pub(crate) fn defer_free(&mut self, taken: TakenPiece, units: u32, uses: Stamps) -> bool {
        let known = self.arena.is_taken(taken);
        if known {
            self.pending_units += u64::from(units);
            self.pending.push_back(PendingFree { taken, units, uses });
        }
        known
    }

    /// Whether nothing is pending.
    pub(crate) fn is_settled(&self) -> bool {
        self.pending.is_empty()
    }

    /// Looks at up to `look_at` pending blocks, the longest pending first, and frees those not used any more; returns the units.
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
