//! A read that a thread may repeat until it finds what it waits for.
//!
//! A loop that waits reads one place again and again. Each read may find something released, and by the memory model the thread is ordered behind
//! all of it. But a thread that had been slower would have read the last value only, and the program must be right then too. So a read that is
//! repeated orders nothing: it drops what the reads before it found. A race that needs one of several releases to be missed is found
//! this way whatever the order in which threads run.

use std::sync::Arc;

use super::fence_snapshot::LaneSync;
use super::vector_clock::{Clock, Time};
use crate::exec::warp_register::LANES;

/// What lanes of a warp know of other warps.
pub(super) type Known = Option<Box<[Option<Arc<Clock>>; LANES]>>;
/// The order between pairs of lanes.
pub(super) type Pairs = Option<Box<[[Time; LANES]; LANES]>>;
/// How lanes take part in synchronisation through memory.
pub(super) type Syncs = Option<Box<[LaneSync; LANES]>>;

/// What a lane knew before a read that it may repeat.
pub(super) struct LastPoll {
    /// Instruction and address.
    pub(super) place: (u32, u64),
    known: Option<Arc<Clock>>,
    row: Option<Box<[Time; LANES]>>,
    sync: Option<LaneSync>,
}

impl LastPoll {
    pub(super) fn new(place: (u32, u64), lane: usize, known: &Known, pairs: &Pairs, sync: &Syncs) -> Self {
        Self {
            place,
            known: known.as_ref().and_then(|known| known[lane].clone()),
            row: pairs.as_ref().map(|pairs| Box::new(pairs[lane])),
            sync: sync.as_ref().map(|sync| sync[lane].clone()),
        }
    }

    /// The lane knows again what it knew then.
    pub(super) fn restore(&self, lane: usize, known: &mut Known, pairs: &mut Pairs, sync: &mut Syncs) {
        if let Some(known) = known {
            known[lane].clone_from(&self.known);
        }
        if let Some(pairs) = pairs {
            pairs[lane] = self.row.as_ref().map_or([0; LANES], |row| **row);
        }
        if let Some(sync) = sync {
            sync[lane] = self.sync.clone().unwrap_or_default();
        }
    }
}
