//! The ranks of a communicator as processes of a job.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kiln_driver::ShortTime;
use kiln_operation::CommunicatorId;

use crate::deadline::after;
use crate::error::{GroupError, Result};
use crate::rank_loss::PANICKED;
use crate::rebuild_calls::RebuildCalls;
use crate::rendezvous::{EndingLosses, LostRank, Rendezvous, RendezvousError, WhyAbsent};
use crate::seat::{Application, Seat};

/// How long the thread that looks for losses waits for the store.
const LEFT_WAIT: Duration = Duration::from_millis(100);
/// How long a replacement that takes its application back waits for ranks that have read it.
const TAKEN_WAIT: Duration = Duration::from_secs(1);

/// Between two looks whether a rank that is waited for has begun again.
const BEYOND_PERIOD: Duration = Duration::from_millis(20);

/// Between two looks whether a rank that is waited for has dropped its communicator.
const LEFT_PERIOD: Duration = Duration::from_millis(200);

/// How a rank has gone that has left the job, and one that has dropped its communicator or shut its device down.
pub(crate) const LEFT_JOB: &str = "it has left the job in order";
const ENDED_PART: &str = "it has ended its part of the communicator";

/// The job of ranks in several processes.
#[derive(Clone)]
pub(crate) struct Job {
    pub(crate) rendezvous: Arc<Rendezvous>,
    /// The rank in the job of each rank of the communicator.
    pub(crate) ranks: Vec<u32>,
}

fn failed(error: RendezvousError) -> GroupError {
    GroupError::Rendezvous(Arc::new(error))
}

/// Under which name a rank of a job says that it is a replacement. The value goes away when that rank is lost.
fn application_key(rank: u32) -> String {
    format!("{}replacement", Rendezvous::own_keys(rank))
}

fn left_key(id: CommunicatorId, rank: u32) -> String {
    format!("kiln/left/{}/{rank}", id.short())
}

fn called_key(id: CommunicatorId, rank: u32) -> String {
    format!("kiln/called/{}/{rank}", id.short())
}

fn overdue_key(id: CommunicatorId) -> String {
    format!("kiln/overdue/{}", id.short())
}

fn joined_key(id: CommunicatorId, rank: u32) -> String {
    format!("kiln/joined/{}/{rank}", id.short())
}

fn losses_key(id: CommunicatorId, rank: u32) -> String {
    format!("kiln/losses/{}/{rank}", id.short())
}

fn calls_key(id: CommunicatorId, rank: u32) -> String {
    format!("kiln/rebuilds/{}/{rank}", id.short())
}

fn seat_key(application: Application) -> String {
    format!("kiln/seat/{application:032x}")
}

/// Replacements, as a rank tells them to the others.
fn said_applications(applications: &BTreeMap<u32, Application>) -> Vec<u8> {
    applications.values().flat_map(|one| one.to_le_bytes()).collect()
}

impl Job {
    /// Ranks of the communicator whose processes are lost now, or were lost since there had been `seen` losses and may be replaced. And how many losses there were.
    /// A rank that was lost because another one had gone comes after that one.
    pub(crate) fn lost(&self, id: CommunicatorId, seen: usize) -> (Vec<(u32, String)>, usize) {
        let (lost, seen) = self.rendezvous.losses_since(seen);
        let mut found = Vec::new();
        for LostRank { rank, cause } in lost {
            let Some(place) = self.place(rank) else { continue };
            found.extend(self.gone_before(id, rank));
            found.push((place, cause));
        }
        (found, seen)
    }

    /// The rank of the communicator that had gone before a rank was lost which had been told of that, and how it went.
    fn gone_before(&self, id: CommunicatorId, lost: u32) -> Option<(u32, String)> {
        let told = self.rendezvous.told_absence(lost)?;
        let how = match told.why {
            WhyAbsent::LeftJob if self.rendezvous.left_ranks().contains(told.ranks.first()?) => LEFT_JOB,
            WhyAbsent::EndedPart(communicator) if communicator == id.short() => ENDED_PART,
            _ => return None,
        };
        Some((self.place(*told.ranks.first()?)?, how.to_owned()))
    }

    /// The ranks of the communicator that were late before one was lost which had waited for them.
    pub(crate) fn late_before(&self, lost: u32) -> Vec<u32> {
        let of_job = self.ranks.get(lost as usize).copied().unwrap_or(lost);
        let told = self.rendezvous.told_absence(of_job).filter(|told| told.is_late());
        told.iter().flat_map(|told| &told.ranks).filter_map(|rank| self.place(*rank)).collect()
    }

    /// A rank of the communicator has left the job, and this rank was told.
    pub(crate) fn say_told_left(&self, rank: u32) {
        if let Some(of_job) = self.ranks.get(rank as usize)
            && self.rendezvous.left_ranks().contains(of_job)
        {
            self.rendezvous.say_told(vec![*of_job], WhyAbsent::LeftJob);
        }
    }

    /// The rank of the communicator that a rank of the job has.
    pub(crate) fn place(&self, rank: u32) -> Option<u32> {
        Some(self.ranks.iter().position(|known| *known == rank)? as u32)
    }

    /// Whether the ranks cannot meet any more without this rank of the communicator: rank 0 of the job, whose process has ended or is about to. One whose device alone is lost serves the
    /// others further; the process of a thread that panicked most often ends.
    pub(crate) fn needs(&self, lost: &LostRank) -> bool {
        self.is_first(lost.rank) && (lost.cause.starts_with(PANICKED) || !self.rendezvous.has_store())
    }

    /// Whether a rank of the communicator is rank 0 of the job, which keeps what the ranks meet at.
    pub(crate) fn is_first(&self, rank: u32) -> bool {
        self.ranks.get(rank as usize) == Some(&0)
    }

    /// Says that a rank of the communicator leaves as planned, and how many collectives it has submitted, where that can be compared.
    pub(crate) fn say_left(&self, id: CommunicatorId, rank: u32, submitted: Option<u64>) {
        let said = submitted.map(u64::to_le_bytes);
        self.rendezvous.post(&left_key(id, rank), said.as_ref().map_or(&[], |said| said));
    }

    /// Says how much a rank of the communicator has called, and in what it waits.
    pub(crate) fn say_called(&self, id: CommunicatorId, rank: u32, said: &[u8]) {
        self.rendezvous.post(&called_key(id, rank), said);
    }

    /// What a rank of the communicator said of that last; none if the store does not say in time.
    pub(crate) fn called(&self, id: CommunicatorId, rank: u32) -> Option<Vec<u8>> {
        let of_job = self.ranks.get(rank as usize).copied()?;
        self.rendezvous.last_word(of_job, &called_key(id, rank), Instant::now() + LEFT_WAIT)
    }

    /// Says that a rank of the communicator gives up a collective because of others.
    pub(crate) fn say_given_up_collective(&self, id: CommunicatorId, said: &[u8]) {
        self.rendezvous.post(&overdue_key(id), said);
    }

    /// What a rank that did so said, if one did.
    pub(crate) fn given_up_collective(&self, id: CommunicatorId, rank: u32) -> Option<Vec<u8>> {
        let of_job = self.ranks.get(rank as usize).copied()?;
        self.rendezvous.last_word(of_job, &overdue_key(id), Instant::now() + LEFT_WAIT)
    }

    /// Says that a replacement has become a rank of the communicator.
    pub(crate) fn say_joined(&self, id: CommunicatorId, rank: u32) {
        self.rendezvous.post(&joined_key(id, rank), &[]);
    }

    /// Whether a replacement has said so.
    pub(crate) fn has_joined(&self, id: CommunicatorId, rank: u32) -> bool {
        let of_job = self.ranks.get(rank as usize).copied().unwrap_or(rank);
        self.rendezvous.last_word(of_job, &joined_key(id, rank), Instant::now() + LEFT_WAIT).is_some()
    }

    /// Ranks of the communicator that were dropped as planned, without those that are known.
    pub(crate) fn dropped(&self, id: CommunicatorId, is_known: impl Fn(u32) -> bool) -> Vec<u32> {
        let unknown = (0..).zip(&self.ranks).filter(|(rank, _)| !is_known(*rank));
        unknown.filter(|(rank, of_job)| self.has_left(id, (*rank, **of_job))).map(|(rank, _)| rank).collect()
    }

    /// Whether a rank of the communicator was dropped as planned.
    fn has_left(&self, id: CommunicatorId, (rank, of_job): (u32, u32)) -> bool {
        let end = after(Instant::now(), self.rendezvous.timeout());
        self.rendezvous.last_word(of_job, &left_key(id, rank), end).is_some()
    }

    /// Ranks of the communicator that have left the job as planned, the first one first, without those that are known, and how many collectives they had submitted.
    pub(crate) fn left(&self, id: CommunicatorId, is_known: impl Fn(u32) -> bool) -> Vec<(u32, Option<u64>)> {
        let ranks = self.rendezvous.left_ranks();
        let placed = ranks.into_iter().filter_map(|of_job| Some((of_job, self.place(of_job)?)));
        let fresh = placed.filter(|(_, rank)| !is_known(*rank));
        let count = |(of_job, rank): (u32, u32)| {
            let said = self.rendezvous.last_word(of_job, &left_key(id, rank), Instant::now() + LEFT_WAIT);
            (rank, said.and_then(|said| said.try_into().ok()).map(u64::from_le_bytes))
        };
        fresh.map(count).collect()
    }

    /// Says how many ranks of the communicator this one knows to be lost, and their replacements once it knows those, before it waits for others.
    pub(crate) fn say_losses(
        &self,
        id: CommunicatorId,
        rank: u32,
        lost: &[LostRank],
        applications: &BTreeMap<u32, Application>,
    ) -> Result<()> {
        let said = [&(lost.len() as u64).to_le_bytes()[..], &said_applications(applications)].concat();
        self.rendezvous.put(&losses_key(id, rank), &said).map_err(failed)
    }

    /// Says how a rank of the communicator has rebuilt it so far.
    pub(crate) fn say_calls(&self, id: CommunicatorId, rank: u32, calls: &RebuildCalls) {
        self.rendezvous.post(&calls_key(id, rank), calls.bytes());
    }

    /// How the ranks of the communicator have rebuilt it so far, where they have.
    pub(crate) fn calls(&self, id: CommunicatorId) -> BTreeMap<u32, RebuildCalls> {
        let end = after(Instant::now(), self.rendezvous.timeout());
        let said = |(rank, of_job): (u32, &u32)| {
            let said = self.rendezvous.last_word(*of_job, &calls_key(id, rank), end)?;
            Some((rank, RebuildCalls::from_bytes(said)))
        };
        (0..).zip(&self.ranks).filter_map(said).collect()
    }

    /// Whether a rank knows of more losses than these, or of other replacements. Then it says nothing more in a round with these.
    fn is_beyond(
        &self,
        id: CommunicatorId,
        (rank, of_job): (u32, u32),
        (lost, applications): (&[LostRank], &BTreeMap<u32, Application>),
        end: Instant,
    ) -> bool {
        let said = self.rendezvous.last_word(of_job, &losses_key(id, rank), end);
        let Some((count, others)) = said.as_deref().and_then(<[u8]>::split_first_chunk) else { return false };
        let count = u64::from_le_bytes(*count);
        let has_other =
            !applications.is_empty() && !others.is_empty() && others != said_applications(applications);
        count > lost.len() as u64 || has_other
    }

    /// As [`Membership::exchange`](crate::membership::Membership::exchange).
    pub(crate) fn exchange(
        &self,
        (id, rank): (CommunicatorId, u32),
        (name, lost, losses_seen): (&str, &[LostRank], usize),
        applications: &BTreeMap<u32, Application>,
        said: &[u8],
    ) -> Result<Option<BTreeMap<u32, Vec<u8>>>> {
        self.rendezvous.acknowledge_losses();
        let began = Instant::now();
        let key = |rank: u32| format!("{name}/{rank}");
        self.rendezvous.put(&key(rank), said).map_err(failed)?;
        let is_left = |rank: &u32| lost.iter().all(|lost| lost.rank != *rank);
        let end = after(began, self.rendezvous.timeout());
        // A rank that is lost after it has said its word is no end of this round: the others may have it already.
        let left = (0..).zip(&self.ranks).filter(|(other, _)| is_left(other));
        let mut missed: Vec<u32> = left.clone().map(|(_, of_job)| *of_job).collect();
        // Then another rank may have begun again without the lost one, before it came to this round. A replacement may be lost at any time, and another one come.
        let mut is_reduced = !applications.is_empty();
        let mut heard = BTreeMap::new();
        for (other, of_job) in left.clone() {
            let value = loop {
                let losses = EndingLosses::Since(losses_seen, &missed);
                let period = if is_reduced { BEYOND_PERIOD } else { LEFT_PERIOD };
                let until = end.min(Instant::now() + period);
                match self.rendezvous.get_while(*of_job, ("rebuild", &key(other)), until, losses) {
                    Ok(None) if until < end => {
                        let is_beyond = self.is_beyond(id, (other, *of_job), (lost, applications), end);
                        let is_over = is_beyond || self.has_left(id, (other, *of_job));
                        if is_over && self.rendezvous.last_word(*of_job, &key(other), end).is_none() {
                            return Ok(None);
                        }
                    }
                    Ok(value) => break value,
                    Err(RendezvousError::RankLost { rank: now_lost, .. }) => {
                        let place = self.place(now_lost).filter(is_left);
                        match place.and_then(|place| self.rendezvous.last_word(now_lost, &key(place), end)) {
                            Some(_) => {
                                missed.retain(|rank| *rank != now_lost);
                                is_reduced = true;
                            }
                            None => return Ok(None),
                        }
                    }
                    // It dropped its communicator before, which is known when this begins again.
                    Err(RendezvousError::RankLeft { .. }) if self.has_left(id, (other, *of_job)) => {
                        return Ok(None);
                    }
                    Err(error) => return Err(failed(error)),
                }
            };
            let Some(value) = value else {
                let is_absent = |(rank, of_job): &(u32, &u32)| {
                    self.rendezvous.last_word(**of_job, &key(*rank), end + LEFT_WAIT).is_none()
                };
                let ranks = left.filter(is_absent).map(|(rank, _)| rank).collect();
                return Err(GroupError::RanksAbsent { ranks, waited: began.elapsed() });
            };
            heard.insert(other, value);
        }
        Ok(Some(heard))
    }

    /// Waits until each lost rank has a replacement. None if another rank is lost meanwhile.
    ///
    /// # Errors
    /// Rank 0 of the job is lost, whose process keeps the store: none can take its place. Ranks without a replacement; the store is lost.
    pub(crate) fn applications(&self, lost: &[LostRank]) -> Result<Option<BTreeMap<u32, Application>>> {
        let is_first = |lost: &&LostRank| self.ranks.get(lost.rank as usize) == Some(&0);
        if let Some(LostRank { rank, cause }) = lost.iter().find(is_first) {
            return Err(GroupError::Collective {
                what: format!(
                    "rank {rank}, which is rank 0 of the job, is lost ({cause}) and cannot be replaced: its process keeps what the ranks meet at"
                ),
                next: "call `rebuild` on the ranks that are left, while that process lives",
            });
        }
        self.rendezvous.acknowledge_losses();
        let began = Instant::now();
        let mut found = BTreeMap::new();
        for LostRank { rank, .. } in lost {
            let Some(process) = self.ranks.get(*rank as usize) else { continue };
            match self.rendezvous.get(&application_key(*process)) {
                Ok(value) => {
                    let value = value.try_into().map(u128::from_le_bytes).unwrap_or_default();
                    found.insert(*rank, value);
                }
                Err(RendezvousError::RankLost { .. }) => return Ok(None),
                Err(RendezvousError::NoValue { .. }) => {
                    let missing =
                        lost.iter().map(|lost| lost.rank).filter(|rank| !self.has_application(*rank));
                    let (ranks, waited) = (missing.collect(), began.elapsed());
                    return Err(GroupError::ReplacementsAbsent { ranks, waited });
                }
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(Some(found))
    }

    /// Whether a replacement of a rank waits for its place now.
    fn has_application(&self, rank: u32) -> bool {
        let process = self.ranks.get(rank as usize);
        process.is_some_and(|process| self.rendezvous.value_now(&application_key(*process)).is_some())
    }

    /// Gives a replacement its place.
    pub(crate) fn seat(&self, application: Application, seat: &Seat) -> Result<()> {
        let (job_ranks, meetings) = (self.ranks.clone(), self.rendezvous.meetings());
        let seat = Seat { job_ranks, meetings, ..seat.clone() };
        self.rendezvous.put(&seat_key(application), &seat.to_bytes()).map_err(failed)
    }
}

/// Says that this process is a replacement, and waits until the ranks that are left have given it its place. If they do not, it takes back what it said.
pub(crate) fn apply(rendezvous: &Rendezvous) -> Result<Seat> {
    let application: Application = Rendezvous::random_number();
    let (own_key, seat_key) = (application_key(rendezvous.rank()), seat_key(application));
    rendezvous.put(&own_key, &application.to_le_bytes()).map_err(failed)?;
    let waited = loop {
        rendezvous.acknowledge_losses();
        match rendezvous.get(&seat_key) {
            Ok(bytes) => return parsed(&bytes),
            // The others begin again without that one.
            Err(RendezvousError::RankLost { .. }) => {}
            Err(RendezvousError::NoValue { waited, .. }) => break waited,
            Err(error) => return Err(failed(error)),
        }
    };
    rendezvous.remove(&own_key).map_err(failed)?;
    // Ranks that read it just before give the place within this time.
    let end = Instant::now() + TAKEN_WAIT;
    while Instant::now() < end {
        rendezvous.acknowledge_losses();
        match rendezvous.get_until(&seat_key, end) {
            Ok(Some(bytes)) => return parsed(&bytes),
            Ok(None) | Err(RendezvousError::RankLost { .. }) => {}
            Err(error) => return Err(failed(error)),
        }
    }
    let rank = rendezvous.rank();
    Err(GroupError::Collective {
        what: format!(
            "the ranks that are left have not given rank {rank} its place within {}",
            ShortTime(waited)
        ),
        next: "let each of them call `rebuild_replaced`, and not `rebuild`, while this one waits",
    })
}

/// The place that a replacement was given.
fn parsed(bytes: &[u8]) -> Result<Seat> {
    Seat::parse(bytes).ok_or_else(|| GroupError::Collective {
        what: "the place of a replacement is told in a way that this version does not read".into(),
        next: "start the same version of kiln on all hosts",
    })
}
