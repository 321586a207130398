//! Replays of graphs with collectives, which a communicator that was aborted does not take any more.

use std::sync::{Arc, MutexGuard};

use super::making::Inside;
use super::{NcclRank, NcclResult, Turn};

/// The ranks whose collectives are in a graph: each once, in an order that is the same for all graphs.
#[derive(Clone, Default)]
pub(crate) struct NcclReplay {
    ranks: Vec<Arc<NcclRank>>,
}

/// Keeps what the communicators of a graph have from being freed.
pub(crate) struct ReplayTurn<'a> {
    // In this order: a rank is left before another thread has its turn.
    _inside: Vec<Inside<'a>>,
    _turns: Vec<MutexGuard<'a, Turn>>,
}

impl NcclReplay {
    /// The ranks of all of these.
    pub(crate) fn union<'a>(parts: impl Iterator<Item = &'a Self>) -> Self {
        let mut ranks: Vec<_> = parts.flat_map(|part| part.ranks.iter().cloned()).collect();
        ranks.sort_by_key(Arc::as_ptr);
        ranks.dedup_by_key(|rank| Arc::as_ptr(rank));
        Self { ranks }
    }

    /// The rank of one collective.
    pub(crate) fn of(rank: &Arc<NcclRank>) -> Self {
        Self { ranks: vec![rank.clone()] }
    }

    /// Whether the graph has no collectives.
    pub(crate) fn is_empty(&self) -> bool {
        self.ranks.is_empty()
    }

    /// Begins a replay: nothing that the communicators have is freed until it is queued.
    ///
    /// # Errors
    /// One was aborted or has failed, and why.
    pub(crate) fn begin(&self) -> NcclResult<ReplayTurn<'_>> {
        let turns = self.ranks.iter().map(|rank| rank.turn()).collect();
        let inside = self.ranks.iter().map(|rank| rank.making.enter_replay()).collect();
        let begun = ReplayTurn { _inside: inside, _turns: turns };
        // After this thread has said that it is inside: an abort either waits for it, or is seen here.
        self.ranks.iter().try_for_each(|rank| match rank.is_to_end() {
            true => Err(rank.ended()),
            false => rank.failed.get().map_or(Ok(()), |failed| Err(failed.clone())),
        })?;
        Ok(begun)
    }
}
