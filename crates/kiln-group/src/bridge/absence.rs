//! Ranks that do not come to a call: how long they are waited for, and what is said of it.

use std::time::{Duration, Instant};

use kiln_driver::ShortTime;
use kiln_runtime::internal::note_finding;

use super::call_text::{called_at, number_text};
use super::{Bridge, Caller, NEXT, Place, rendezvous};
use crate::collective_part::Part;
use crate::error::{GroupError, Result, named};
use crate::rendezvous::{EndingLosses, RendezvousError};
use crate::transfer::{self, Transfer};

/// Between two looks whether the rank that a receive waits for has ended.
const END_PERIOD: Duration = Duration::from_millis(100);

/// How long a rank that has ended its part of a communicator may take to leave the job, which then is what is told.
const LEAVING_LIMIT: Duration = Duration::from_millis(300);
/// How long the store may take to say whether a rank has ended, or has come.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);

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
    /// Waits for a piece of what a rank brings, or until it is known that none comes, and which rank is why.
    pub(super) fn piece(
        &self,
        place: &Place,
        rank: u32,
        (key, end): (&str, Instant),
    ) -> Result<std::result::Result<Vec<u8>, (u32, Absence)>> {
        let of_job = self.of_job(rank);
        loop {
            let until = end.min(Instant::now() + END_PERIOD);
            match self.job.rendezvous.get_while(of_job, (key, key), until, self.losses()) {
                Ok(Some(found)) => return Ok(Ok(found)),
                Ok(None) if Instant::now() >= end => return Ok(Err((rank, Absence::Late))),
                Ok(None) => {}
                Err(RendezvousError::RankLeft { .. }) => {
                    return self.first_gone(place, (rank, Absence::Left)).map(Err);
                }
                Err(error) => return Err(rendezvous(error)),
            }
            let asked_until = Instant::now() + ANSWER_LIMIT;
            if self.job.rendezvous.last_word(of_job, &self.given_up_key(rank), asked_until).is_some() {
                return self.first_gone(place, (rank, Absence::Ended)).map(Err);
            }
            let Some(said) = self.job.rendezvous.last_word(of_job, &self.end_key(rank), asked_until) else {
                continue;
            };
            let is_over = match place {
                Place::All(_) => true,
                Place::Pair(Transfer { number, .. }) => transfer::sent_to(self.rank, &said) <= *number,
            };
            if is_over {
                return match self.leaving(rank, key)? {
                    Ok(found) => Ok(Ok(found)),
                    Err(why) => self.first_gone(place, (rank, why)).map(Err),
                };
            }
        }
    }

    /// A rank that has ended its part may have come just before that, and may be about to leave the job.
    fn leaving(&self, rank: u32, key: &str) -> Result<std::result::Result<Vec<u8>, Absence>> {
        let until = Instant::now() + LEAVING_LIMIT;
        match self.job.rendezvous.get_while(self.of_job(rank), (key, key), until, self.losses()) {
            Ok(found) => Ok(found.ok_or(Absence::Ended)),
            Err(RendezvousError::RankLeft { .. }) => Ok(Err(Absence::Left)),
            Err(error) => Err(rendezvous(error)),
        }
    }

    /// Why a rank does not come that has gone, or has given up. Another rank that had gone before it may be the reason of that, and is the one that is told then.
    ///
    /// # Errors
    /// What that rank said when it gave up, where no rank has gone that did not give up.
    fn first_gone(&self, place: &Place, known: (u32, Absence)) -> Result<(u32, Absence)> {
        let until = Instant::now() + ANSWER_LIMIT;
        let word = |rank: u32, key: &str| self.job.rendezvous.last_word(self.of_job(rank), key, until);
        let has_given_up = |rank: u32| word(rank, &self.given_up_key(rank)).is_some();
        let is_missing = |rank: u32| word(rank, &format!("{}/0", self.key(place, rank))).is_none();
        // A rank that has given up withdraws what it brought before it says so, and says so before it goes.
        let is_first = |rank: &u32| *rank != self.rank && !has_given_up(*rank) && is_missing(*rank);
        if let Place::All(_) = place {
            let of_job = self.job.rendezvous.left_ranks();
            let left: Vec<u32> = of_job.into_iter().filter_map(|of_job| self.job.place(of_job)).collect();
            if let Some(first) = left.iter().copied().find(is_first) {
                return Ok((first, Absence::Left));
            }
            let has_ended = |rank: &u32| word(*rank, &self.end_key(*rank)).is_some();
            let ended = (0..self.size).filter(|rank| !left.contains(rank) && has_ended(rank));
            for rank in ended.filter(is_first) {
                match self.leaving(rank, &format!("{}/0", self.key(place, rank)))? {
                    Err(why) => return Ok((rank, why)),
                    Ok(_) => continue,
                }
            }
        }
        match word(known.0, &self.given_up_key(known.0)) {
            Some(said) => Err(self.told_given_up(&said)),
            None => Ok(known),
        }
    }

    /// The losses that end a wait.
    fn losses(&self) -> EndingLosses<'_> {
        EndingLosses::Since(self.losses_before, &self.job.ranks)
    }

    fn of_job(&self, rank: u32) -> u32 {
        self.job.ranks.get(rank as usize).copied().unwrap_or(rank)
    }

    /// The ranks that have not come to a call, of which one is known.
    fn absent_ranks(&self, place: &Place, known: u32) -> Vec<u32> {
        let end = Instant::now() + ANSWER_LIMIT;
        let is_absent = |(rank, of_job): &(u32, &u32)| {
            let has_come =
                || self.job.rendezvous.last_word(**of_job, &format!("{}/0", self.key(place, *rank)), end);
            *rank == known || *rank != self.rank && has_come().is_none()
        };
        (0..).zip(&self.job.ranks).filter(is_absent).map(|(rank, _)| rank).collect()
    }

    /// A rank does not come to a call.
    pub(super) fn absent(
        &self,
        place: &Place,
        (rank, why): (u32, Absence),
        (part, caller): (&Part, Caller),
    ) -> GroupError {
        let (what, next) = match place {
            Place::All(_) => {
                let own = &part.collective;
                let collective = own.step().map_or_else(|| own.to_string(), |step| step.to_string());
                let id = self.id.short();
                let call = format!("{}, {collective}, of communicator {id}", number_text(place));
                let what = match why {
                    Absence::Late => {
                        let ranks = named(&self.absent_ranks(place, rank));
                        format!("{ranks} did not come to {call}, within {}", ShortTime(self.deadline))
                    }
                    Absence::Left => format!("rank {rank} has left the job and does not come to {call}"),
                    Absence::Ended => format!(
                        "rank {rank} has ended its part of communicator {id} and does not come to {}, {collective}",
                        number_text(place)
                    ),
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
        match place {
            Place::All(_) => note_finding(&format!("{what}; called at {}", caller.place)),
            // It is said with its place.
            Place::Pair(_) => note_finding(&what),
        }
        GroupError::Collective { what, next }
    }
}
