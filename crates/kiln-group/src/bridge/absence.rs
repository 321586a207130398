//! Ranks that do not come to a call: how long they are waited for, and what is said of it.

use std::time::{Duration, Instant};

use kiln_driver::ShortTime;
use kiln_runtime::internal::note_finding;

use super::call_text::{called_at, number_text};
use super::{Bridge, Caller, NEXT, Place, rendezvous};
use crate::collective_part::Part;
use crate::error::{GroupError, Result};
use crate::rank_list::named;
use crate::rendezvous::{EndingLosses, RendezvousError, WhyAbsent};
use crate::transfer::{self, Transfer};

/// Between two looks whether the rank that a receive waits for has ended.
const END_PERIOD: Duration = Duration::from_millis(100);

/// How long a rank that has ended its part of a communicator may take to leave the job, which then is what is told.
const LEAVING_LIMIT: Duration = Duration::from_millis(300);
/// How long the store may take to say whether a rank has ended, or has come.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);

/// What a rank brought, or the rank that is the reason why nothing comes, and why.
type PieceOrAbsence = std::result::Result<Vec<u8>, (u32, Absence)>;

/// Why a rank does not come to a call.
#[derive(Clone, Copy)]
pub(super) enum Absence {
    Late,
    /// It has left the job.
    Left,
    /// It has dropped its communicator.
    Ended,
    /// Its device was shut down.
    ShutDown,
    /// The store of the job does not answer, so that it is not known which ranks have come.
    SilentStore,
}

/// What was known of ranks that have gone: those that have left the job, and the last that said so of the communicator.
#[derive(PartialEq, Eq, Default)]
struct Gone {
    left: Vec<u32>,
    said: Option<Vec<u8>>,
}

/// Until when the store may take to answer in a wait that ends then.
fn limited(end: Instant) -> Instant {
    let now = Instant::now();
    end.max(now + END_PERIOD).min(now + ANSWER_LIMIT)
}

impl Bridge {
    /// Waits for a piece of what a rank brings, or until it is known that none comes, or that the call is not done for another rank; and which rank is why.
    pub(super) fn piece(
        &self,
        place: &Place,
        rank: u32,
        (key, end): (&str, Instant),
    ) -> Result<PieceOrAbsence> {
        let of_job = self.of_job(rank);
        let mut known = Gone::default();
        loop {
            let until = end.min(Instant::now() + END_PERIOD);
            let left = self.job.rendezvous.left_ranks();
            match self.job.rendezvous.get_while_here(of_job, (key, key), until, self.losses(), &left) {
                Ok(Some(found)) => return Ok(Ok(found)),
                Ok(None) => {}
                Err(RendezvousError::RankLeft { .. }) => {
                    return self.first_gone(place, (rank, Absence::Left)).map(Err);
                }
                Err(error) => return Err(rendezvous(error)),
            }
            let answered = limited(end);
            let found = match place {
                Place::All(_) => self.fresh_gone(place, &mut known, answered)?.map(Err),
                Place::Pair(transfer) => self.ended_sender(place, transfer, (rank, key), answered)?,
            };
            if let Some(found) = found {
                return Ok(found);
            }
            if until >= end {
                let answers = self.job.rendezvous.store_answers().map_err(rendezvous)?;
                return Ok(Err((rank, if answers { Absence::Late } else { Absence::SilentStore })));
            }
        }
    }

    /// A rank that has gone without coming to a call of all, where more have gone than were known.
    fn fresh_gone(&self, place: &Place, known: &mut Gone, until: Instant) -> Result<Option<(u32, Absence)>> {
        let said = self.job.rendezvous.last_word(self.of_job(self.rank), &self.departed_key(), until);
        let now = Gone { left: self.job.rendezvous.left_ranks(), said };
        // A store that does not answer has said nothing.
        if now == *known || now.said.is_none() && known.said.is_some() {
            return Ok(None);
        }
        let found = self.find_gone(place);
        *known = now;
        found
    }

    /// The sender of a transfer, if it has gone or given up before it; or the piece, if it came just before that.
    fn ended_sender(
        &self,
        place: &Place,
        transfer: &Transfer,
        (rank, key): (u32, &str),
        until: Instant,
    ) -> Result<Option<PieceOrAbsence>> {
        let word = |key: &str| self.job.rendezvous.last_word(self.of_job(rank), key, until);
        if word(&self.given_up_key(rank)).is_some() {
            return self.first_gone(place, (rank, Absence::Ended)).map(|gone| Some(Err(gone)));
        }
        let Some(said) = word(&self.end_key(rank)) else { return Ok(None) };
        if transfer::sent_to(self.rank, &said) > transfer.number {
            return Ok(None);
        }
        Ok(Some(match self.leaving(rank, key, &said)? {
            Ok(found) => Ok(found),
            Err(why) => Err(self.first_gone(place, (rank, why))?),
        }))
    }

    /// A rank that has ended its part may have come just before that, and may be about to leave the job.
    fn leaving(&self, rank: u32, key: &str, said: &[u8]) -> Result<std::result::Result<Vec<u8>, Absence>> {
        let until = Instant::now() + LEAVING_LIMIT;
        let ended = if transfer::is_shut_down(said) { Absence::ShutDown } else { Absence::Ended };
        match self.job.rendezvous.get_while(self.of_job(rank), (key, key), until, self.losses()) {
            Ok(found) => Ok(found.ok_or(ended)),
            Err(RendezvousError::RankLeft { .. }) => Ok(Err(Absence::Left)),
            Err(error) => Err(rendezvous(error)),
        }
    }

    /// Why a rank does not come that has gone, or has given up. Another rank that had gone before it may be the reason of that, and is the one that is told then.
    ///
    /// # Errors
    /// What that rank said when it gave up, where no rank has gone that did not give up.
    fn first_gone(&self, place: &Place, known: (u32, Absence)) -> Result<(u32, Absence)> {
        let found = match place {
            Place::All(_) => self.find_gone(place)?,
            Place::Pair(_) => None,
        };
        if let Some(found) = found {
            return Ok(found);
        }
        let until = Instant::now() + ANSWER_LIMIT;
        let said = self.job.rendezvous.last_word(self.of_job(known.0), &self.given_up_key(known.0), until);
        match said {
            Some(said) => Err(self.told_given_up(&said)),
            None => Ok(known),
        }
    }

    /// The first rank that has gone without coming to a call of all.
    ///
    /// # Errors
    /// What a rank said when it gave up, where no rank has gone that did not give up.
    fn find_gone(&self, place: &Place) -> Result<Option<(u32, Absence)>> {
        let until = Instant::now() + ANSWER_LIMIT;
        let word = |rank: u32, key: &str| self.job.rendezvous.last_word(self.of_job(rank), key, until);
        let of_job = self.job.rendezvous.left_ranks();
        let left: Vec<u32> = of_job.into_iter().filter_map(|of_job| self.job.place(of_job)).collect();
        let missing = self.missing_ranks(place, until);
        let gave_up = |rank: u32| word(rank, &self.given_up_key(rank));
        let is_first = |rank: &u32| missing.contains(rank) && gave_up(*rank).is_none();
        if let Some(first) = left.iter().copied().find(is_first) {
            return Ok(Some((first, Absence::Left)));
        }
        let mut first_said = None;
        for rank in missing {
            if let Some(said) = gave_up(rank) {
                first_said.get_or_insert(said);
            } else if let Some(said) = word(rank, &self.end_key(rank)) {
                let key = format!("{}/0", self.key(place, rank));
                if let Err(why) = self.leaving(rank, &key, &said)? {
                    return Ok(Some((rank, why)));
                }
            }
        }
        first_said.map_or(Ok(None), |said| Err(self.told_given_up(&said)))
    }

    /// Other ranks that have brought nothing to a call, or have taken it back.
    fn missing_ranks(&self, place: &Place, until: Instant) -> Vec<u32> {
        let is_missing = |rank: &u32| {
            let key = format!("{}/0", self.key(place, *rank));
            *rank != self.rank && self.job.rendezvous.last_word(self.of_job(*rank), &key, until).is_none()
        };
        (0..self.size).filter(is_missing).collect()
    }

    /// The losses that end a wait.
    fn losses(&self) -> EndingLosses<'_> {
        EndingLosses::Since(self.losses_before, &self.job.ranks)
    }

    fn of_job(&self, rank: u32) -> u32 {
        self.job.ranks.get(rank as usize).copied().unwrap_or(rank)
    }

    /// The ranks that have not come to a call, of which one is known. One that has given up had come.
    fn absent_ranks(&self, place: &Place, known: u32) -> Vec<u32> {
        let until = Instant::now() + ANSWER_LIMIT;
        let mut ranks = self.missing_ranks(place, until);
        ranks.retain(|rank| {
            let key = self.given_up_key(*rank);
            self.job.rendezvous.last_word(self.of_job(*rank), &key, until).is_none()
        });
        if ranks.is_empty() { vec![known] } else { ranks }
    }

    /// The ranks that have ended their parts without coming to a call, or have shut their devices down, of which one is known.
    fn ended_ranks(&self, place: &Place, (known, is_shut_down): (u32, bool)) -> Vec<u32> {
        let until = Instant::now() + ANSWER_LIMIT;
        let word = |rank: u32, key: &str| self.job.rendezvous.last_word(self.of_job(rank), key, until);
        let mut ranks = self.missing_ranks(place, until);
        ranks.retain(|rank| {
            let is_alike = |said: Vec<u8>| transfer::is_shut_down(&said) == is_shut_down;
            let has_ended = || word(*rank, &self.end_key(*rank)).is_some_and(is_alike);
            *rank == known || word(*rank, &self.given_up_key(*rank)).is_none() && has_ended()
        });
        if ranks.is_empty() { vec![known] } else { ranks }
    }

    /// A rank is late for a call of all: whether the store knows that all have come. Otherwise the call is given up.
    pub(super) fn decide(&self, places: &[Place], (place, rank): (&Place, u32), part: &Part) -> Result<bool> {
        // A transfer to which its other rank does not come is not done, also if all came to the rest of its group.
        if matches!(place, Place::Pair(_)) {
            return Ok(false);
        }
        let (ranks, what) = self.absent_from_all(place, (rank, Absence::Late), part);
        let of_job: Vec<u32> = ranks.iter().map(|rank| self.of_job(*rank)).collect();
        self.have_come(places, (&of_job, &what))
    }

    /// The error of a call that the store does not take, since a rank has given it up.
    pub(super) fn refused_collective(
        &self,
        place: &Place,
        (part, caller): (&Part, Caller),
        answer: &[u8],
    ) -> Result<GroupError> {
        let by = answer.first_chunk().map_or(self.rank, |by| u32::from_le_bytes(*by));
        // Another rank that has gone before may be the reason.
        if let Some(gone) = self.find_gone(place)? {
            return Ok(self.absent(place, gone, (part, caller)));
        }
        let until = Instant::now() + ANSWER_LIMIT;
        let said = self.job.rendezvous.last_word(self.of_job(by), &self.given_up_key(by), until);
        Ok(match said {
            Some(said) => self.told_given_up(&said),
            None => self.absent(place, (by, Absence::Ended), (part, caller)),
        })
    }

    /// A rank does not come to a call.
    pub(super) fn absent(
        &self,
        place: &Place,
        (rank, why): (u32, Absence),
        (part, caller): (&Part, Caller),
    ) -> GroupError {
        if matches!(why, Absence::SilentStore) {
            return self.silent_store(place, (part, caller));
        }
        let (ranks, what, next) = match place {
            Place::All(_) => {
                let (ranks, what) = self.absent_from_all(place, (rank, why), part);
                (ranks, what, NEXT)
            }
            Place::Pair(transfer) => {
                let why = match why {
                    Absence::Late | Absence::SilentStore => {
                        format!("rank {rank} did not within {}", ShortTime(self.deadline))
                    }
                    Absence::Left => format!("rank {rank} has left the job"),
                    Absence::Ended => format!("rank {rank} has ended its part of the communicator"),
                    Absence::ShutDown => format!("rank {rank} has shut its device down"),
                };
                let call = called_at(transfer, part, caller);
                (vec![rank], call.unmatched(&why), transfer::NEXT)
            }
        };
        self.say_absent(place, (&ranks, why), &what);
        match place {
            Place::All(_) => note_finding(&format!("{what}; called at {}", caller.place)),
            // It is said with its place.
            Place::Pair(_) => note_finding(&what),
        }
        GroupError::Collective { what, next }
    }

    /// Ranks that do not come to a call of all, and what is said of them.
    fn absent_from_all(&self, place: &Place, (rank, why): (u32, Absence), part: &Part) -> (Vec<u32>, String) {
        let own = &part.collective;
        let collective = own.step().map_or_else(|| own.to_string(), |step| step.to_string());
        let (id, number) = (self.id.short(), number_text(place));
        let call = format!("{number}, {collective}, of communicator {id}");
        let ranks = match why {
            Absence::Late | Absence::SilentStore => self.absent_ranks(place, rank),
            Absence::Left => vec![rank],
            Absence::Ended => self.ended_ranks(place, (rank, false)),
            Absence::ShutDown => self.ended_ranks(place, (rank, true)),
        };
        let (who, are_several) = (named(&ranks), ranks.len() > 1);
        let what = match (why, are_several) {
            (Absence::Late | Absence::SilentStore, _) => {
                format!("{who} did not come to {call}, within {}", ShortTime(self.deadline))
            }
            (Absence::Left, _) => format!("{who} has left the job and does not come to {call}"),
            (Absence::Ended, false) => format!(
                "{who} has ended its part of communicator {id} and does not come to {number}, {collective}"
            ),
            (Absence::Ended, true) => format!(
                "{who} have ended their parts of communicator {id} and do not come to {number}, {collective}"
            ),
            (Absence::ShutDown, false) => {
                format!("{who} has shut its device down and does not come to {call}")
            }
            (Absence::ShutDown, true) => {
                format!("{who} have shut their devices down and do not come to {call}")
            }
        };
        (ranks, what)
    }

    /// Says to the job which ranks this one was told of: it may end because of that.
    fn say_absent(&self, place: &Place, (ranks, why): (&[u32], Absence), what: &str) {
        let told = match (why, place) {
            (Absence::Late | Absence::SilentStore, Place::All(_)) => WhyAbsent::LateInCall(what.to_owned()),
            (Absence::Late | Absence::SilentStore, Place::Pair(_)) => WhyAbsent::LateInCall(format!(
                "{} did not come to {} of communicator {}, within {}",
                named(ranks),
                number_text(place),
                self.id.short(),
                ShortTime(self.deadline)
            )),
            (Absence::Left, _) => WhyAbsent::LeftJob,
            (Absence::Ended | Absence::ShutDown, _) => WhyAbsent::EndedPart(self.id.short()),
        };
        let of_job = ranks.iter().map(|rank| self.of_job(*rank)).collect();
        self.job.rendezvous.say_told(of_job, told);
    }
}
