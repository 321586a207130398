//! A communicator of the ranks that are left after one was lost.

use kiln_operation::CommunicatorId;

use crate::communicator::DeviceCommunicator;
use crate::error::{GroupError, Result};
use crate::rendezvous::LostRank;

/// What came of a communicator that lost a rank, on one of the ranks that are left.
///
/// Collectives are counted from 0 in the order in which this rank submitted them, without those in graphs. All before `done` are done on every rank that is left. Those
/// from `done` to `done_here` are done on this rank and not on all. Those from `done_here` to `submitted` were ended: their tickets fail, and what they were to write
/// cannot be read until it is overwritten whole. None of them is done again by itself: it is not known of each whether it had begun.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RebuiltCommunicator {
    /// This rank of the new communicator.
    pub communicator: DeviceCommunicator,
    /// The ranks that are lost, by their number in the old communicator.
    pub lost: Vec<LostRank>,
    /// The number that each rank of the new communicator had in the old one.
    pub former_ranks: Vec<u32>,
    /// Collectives that are done on all ranks that are left.
    pub done: u64,
    /// Collectives that are done on this rank.
    pub done_here: u64,
    /// Collectives that this rank had submitted.
    pub submitted: u64,
}

impl DeviceCommunicator {
    /// The first rank that is lost, if one is. The communicator takes no more collectives then.
    pub fn lost_rank(&self) -> Option<LostRank> {
        self.first_lost().cloned()
    }

    /// Makes a communicator of the ranks that are left after one was lost. They are in the order of their old ranks.
    ///
    /// Every rank that is left calls it, and it waits for all of them; so each rank needs a thread or a process. If another rank is lost meanwhile, the ranks
    /// begin again without it. Buffers that no unfinished collective was to write, nor work behind one, are as they were.
    ///
    /// # Errors
    /// No rank is lost; ranks that do not call it within the deadline; what [`join`](Self::join) answers.
    pub fn rebuild(&self) -> Result<RebuiltCommunicator> {
        let Some(membership) = self.membership().filter(|_| self.lost_rank().is_some()) else {
            let what = format!("no rank of {self:?} is lost");
            return Err(GroupError::Collective { what, next: "rebuild it when an error names a lost rank" });
        };
        let (rank, limit) = (self.rank(), self.config().deadline);
        let (done_here, submitted) = self.counts();
        loop {
            let lost = membership.lost();
            let round = |name| (name, &lost[..]);
            let Some(counts) = membership.exchange(rank, round("done"), &done_here.to_le_bytes(), limit)?
            else {
                continue;
            };
            let former_ranks: Vec<u32> = counts.keys().copied().collect();
            let count = |bytes: &Vec<u8>| bytes[..].try_into().map(u64::from_le_bytes).ok();
            let done = counts.values().filter_map(count).min().unwrap_or(0);
            let is_leader = former_ranks.first() == Some(&rank);
            let size = former_ranks.len() as u32;
            let id = match is_leader && size > 1 {
                true => Self::new_id(self.runtime())?.bytes().to_vec(),
                false => Vec::new(),
            };
            let Some(ids) = membership.exchange(rank, round("id"), &id, limit)? else { continue };
            let place = former_ranks.iter().position(|former| *former == rank).unwrap_or(0);
            let communicator = match ids.values().next() {
                Some(id) if size > 1 => {
                    let id = CommunicatorId::try_from(&id[..]).map_err(GroupError::collective)?;
                    let members = membership.child(id, &former_ranks);
                    Self::join_in(self.runtime(), id, (place as u32, size), &self.config(), &members)?
                }
                _ => Self::alone(self.runtime())?,
            };
            return Ok(RebuiltCommunicator { communicator, lost, former_ranks, done, done_here, submitted });
        }
    }
}
