//! Losses that a connection was told of.

use std::collections::BTreeSet;

use super::super::error::RendezvousError;
use super::super::seen::EndingLosses;
use super::Connection;
use crate::rank_loss::given_up_cause;

impl Connection {
    /// Takes note of all lost ranks.
    pub(in super::super) fn acknowledge(&self) -> Vec<(u32, String)> {
        self.shared.lock().acknowledge()
    }

    /// All lost ranks.
    pub(in super::super) fn lost(&self) -> Result<Vec<(u32, String)>, RendezvousError> {
        let seen = self.shared.lock();
        match seen.end_of_connection() {
            Some(error) => Err(error),
            None => Ok(seen.lost.iter().map(|(rank, cause)| (*rank, cause.clone())).collect()),
        }
    }

    /// Lost ranks and those that were lost after so many losses, the first one first, and rank 0 at the end if the store is lost; this rank alone if it was given up. And how many
    /// losses there were.
    pub(in super::super) fn losses_since(&self, seen_before: usize) -> (Vec<(u32, String)>, usize) {
        let seen = self.shared.lock();
        if let Some((rank, cause)) = &seen.given_up {
            return (vec![(*rank, given_up_cause(*rank, cause))], seen.losses.len());
        }
        let is_told = |(at, _): &(usize, &(u32, String))| *at >= seen_before || seen.is_last_loss(*at);
        let losses = seen.losses.iter().enumerate().filter(is_told).map(|(_, lost)| lost.clone());
        let store = seen.ended.as_ref().map(|cause| (0, cause.clone()));
        (losses.chain(store).collect(), seen.losses.len())
    }

    /// The loss that ends a wait from now on, if there is one.
    pub(in super::super) fn known_loss(&self, losses: EndingLosses<'_>) -> Option<RendezvousError> {
        let seen = self.shared.lock();
        let (rank, cause) = seen.ending_loss(seen.losses.len(), losses)?;
        Some(RendezvousError::RankLost { rank, cause })
    }

    /// How many losses there were.
    pub(in super::super) fn losses_seen(&self) -> usize {
        self.shared.lock().losses.len()
    }

    /// Lost ranks that the caller knows of.
    pub(in super::super) fn acknowledged(&self) -> BTreeSet<u32> {
        self.shared.lock().acknowledged()
    }
}
