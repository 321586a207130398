//! Communicators of some of the ranks of another.

use std::panic::Location;

use kiln_operation::{CollectiveStep, CommunicatorId};
use kiln_runtime::internal::called_from;

use crate::communicator::DeviceCommunicator;
use crate::error::{GroupError, Result};

/// What a rank says of itself: whether it takes part, its color and its key.
const WORDS: usize = 3;

impl DeviceCommunicator {
    /// Makes one communicator for each color that ranks give; ranks without a color are in none. The ranks of a new one are in the order of their keys,
    /// and of their ranks where keys are equal.
    ///
    /// Every rank calls it, and it waits for all of them; so each rank needs a thread or a process.
    ///
    /// # Errors
    /// What the collectives answer, and what [`join`](Self::join) does.
    #[track_caller]
    pub fn split(&self, color: Option<u32>, key: u32) -> Result<Option<Self>> {
        let _context = called_from(self.runtime(), Location::caller());
        if self.size() == 1 {
            return color.map(|_| Self::alone(self.runtime())).transpose();
        }
        let failed = |source| GroupError::Rank { rank: self.rank(), source };
        let said = [u32::from(color.is_some()), color.unwrap_or(0), key];
        let all = self.exchange(&said)?;
        let mut ranks: Vec<(u32, usize)> = Vec::new();
        for (rank, words) in all.chunks_exact(WORDS).enumerate() {
            if let (Some(color), [1, theirs, key]) = (color, words)
                && color == *theirs
            {
                ranks.push((*key, rank));
            }
        }
        ranks.sort_unstable();
        let mine = self.rank() as usize;
        let leader = ranks.first().map(|(_, rank)| *rank);
        let id = match leader {
            Some(leader) if leader == mine => *self.next_id()?.bytes(),
            _ => [0; CommunicatorId::BYTES],
        };
        let ids = self.exchange(&id)?;
        let (Some(leader), Some(rank)) = (leader, ranks.iter().position(|(_, rank)| *rank == mine)) else {
            // What it reads stays until it is read.
            self.runtime().synchronize().map_err(failed)?;
            return Ok(None);
        };
        let start = leader * CommunicatorId::BYTES;
        let bytes = ids.get(start..start + CommunicatorId::BYTES).unwrap_or(&[]);
        let id = CommunicatorId::try_from(bytes).map_err(GroupError::collective)?;
        let former: Vec<u32> = ranks.iter().map(|(_, rank)| *rank as u32).collect();
        let (rank, size) = (rank as u32, former.len() as u32);
        match self.membership() {
            Some(members) => {
                let members = members.child(id, &former, members.lost_so_far().1);
                Self::join_in(self.runtime(), id, (rank, size), &self.config(), &members).map(Some)
            }
            None => Self::join(self.runtime(), id, rank, size, &self.config()).map(Some),
        }
    }

    /// What all ranks say, in the order of the ranks.
    #[track_caller]
    fn exchange<T>(&self, said: &[T]) -> Result<Vec<T>>
    where
        T: kiln_runtime::Element + kiln_operation::CollectiveElement,
    {
        let failed = |source| GroupError::Rank { rank: self.rank(), source };
        let send = self.runtime().upload(said).map_err(failed)?;
        let recv = self.runtime().zeros::<T>(said.len() * self.size() as usize).map_err(failed)?;
        self.all_gather(&send, &recv).step_of(CollectiveStep::Split).submit()?;
        recv.download().map_err(failed)
    }
}
