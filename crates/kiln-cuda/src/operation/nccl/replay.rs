//! Replays of graphs with collectives, which a communicator that was aborted does not take any more.

use std::sync::{Arc, MutexGuard, PoisonError};

use super::{NcclRank, NcclResult, Turn};
use crate::operation::failure::LibraryFailure;

/// The ranks whose collectives are in a graph: each once, in an order that is the same for all graphs.
#[derive(Clone, Default)]
pub(crate) struct NcclReplay {
    ranks: Vec<Arc<NcclRank>>,
}

/// Keeps the communicators of a graph from being aborted.
pub(crate) struct ReplayTurn<'a> {
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

    /// Begins a replay: none of the communicators is aborted until it is queued.
    ///
    /// # Errors
    /// One was aborted, and why.
    pub(crate) fn begin(&self) -> NcclResult<ReplayTurn<'_>> {
        let turns: NcclResult<Vec<_>> = self.ranks.iter().map(|rank| rank.replay_turn()).collect();
        Ok(ReplayTurn { _turns: turns? })
    }
}

impl NcclRank {
    fn replay_turn(&self) -> NcclResult<MutexGuard<'_, Turn>> {
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let failure: Option<LibraryFailure> = match &turn.aborted {
            Some(aborted) => Some(aborted.clone()),
            None => self.is_to_end().then(|| self.ended()),
        };
        failure.map_or(Ok(turn), Err)
    }
}
