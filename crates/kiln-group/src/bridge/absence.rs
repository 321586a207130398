//! Ranks that do not come to a call: how long they are waited for, and what is said of it.

use std::panic::Location;
use std::time::{Duration, Instant};

use kiln_driver::ShortTime;
use kiln_runtime::internal::note_finding;

use super::{Bridge, NEXT, Place, called_at, number_text, rendezvous};
use crate::collective_part::Part;
use crate::error::{GroupError, Result};
use crate::rendezvous::{EndingLosses, RendezvousError};
use crate::transfer::{self, Transfer};

/// Between two looks whether the rank that a receive waits for has ended.
const END_PERIOD: Duration = Duration::from_millis(100);

/// Why a rank does not come to a call.
#[derive(Clone, Copy)]
pub(super) enum Absence {
    Late,
    /// It has left the job.
    Left,
    /// It has dropped its communicator.
    Ended,
}

impl Bridge {
    /// Waits for a piece of what a rank brings, or until it is known that none comes.
    pub(super) fn piece(
        &self,
        place: &Place,
        rank: u32,
        (key, end): (&str, Instant),
    ) -> Result<std::result::Result<Vec<u8>, Absence>> {
        let of_job = self.job.ranks.get(rank as usize).copied().unwrap_or(rank);
        let losses = EndingLosses::Since(self.losses_before, &self.job.ranks);
        loop {
            let until = match place {
                Place::All(_) => end,
                Place::Pair(_) => end.min(Instant::now() + END_PERIOD),
            };
            match self.job.rendezvous.get_while(of_job, (key, key), until, losses) {
                Ok(Some(found)) => return Ok(Ok(found)),
                Ok(None) if Instant::now() >= end => return Ok(Err(Absence::Late)),
                Ok(None) => {}
                Err(RendezvousError::RankLeft { .. }) => return Ok(Err(Absence::Left)),
                Err(error) => return Err(rendezvous(error)),
            }
            if let Place::Pair(Transfer { number, .. }) = place
                && let Some(said) = self.job.rendezvous.last_word(of_job, &self.end_key(rank), end)
                && transfer::sent_to(self.rank, &said) <= *number
            {
                return Ok(Err(Absence::Ended));
            }
        }
    }

    /// A rank does not come to a call.
    pub(super) fn absent(
        &self,
        place: &Place,
        (rank, why): (u32, Absence),
        (part, caller): (&Part, &'static Location<'static>),
    ) -> GroupError {
        let (what, next) = match place {
            Place::All(_) => {
                let call = format!("{}, {}", number_text(place), part.collective);
                let what = match why {
                    Absence::Late => {
                        format!("rank {rank} did not come to {call}, within {}", ShortTime(self.deadline))
                    }
                    _ => format!("rank {rank} has left the job and does not come to {call}"),
                };
                (what, NEXT)
            }
            Place::Pair(transfer) => {
                let why = match why {
                    Absence::Late => format!("rank {rank} did not within {}", ShortTime(self.deadline)),
                    Absence::Left => format!("rank {rank} has left the job"),
                    Absence::Ended => format!("rank {rank} has ended its part of the communicator"),
                };
                let call = called_at(transfer, part, caller);
                (call.unmatched(&why), transfer::NEXT)
            }
        };
        note_finding(&what);
        GroupError::Collective { what, next }
    }
}
