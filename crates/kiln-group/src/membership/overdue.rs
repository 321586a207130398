//! Collectives on GPUs that are not done by the deadline of their communicator: NCCL waits for ever for a rank that does not come.
//!
//! The thread that looks at ranks measures how long the oldest unfinished collective of each rank has been the oldest. Ranks of one process are compared as they are; a rank of a job says through the
//! store how much it has called and in what it waits, once it has changed and not more often than [`LONGEST_PERIOD`]. When the deadline has passed, a rank that waits asks who has called less than it has,
//! and ends its communicator with that. Where all have called it, the deadline passes once more before it is ended: it may be queued behind other work, and the device does not say so. Ranks that wait
//! are told of one that gave up before their own deadlines.
//!
//! A simulated device has its own deadline, and replays of graphs are not looked at.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use kiln_driver::DeviceKind;

use super::rank_calls::RankCalls;
use super::{LocalRank, Membership};
use crate::abort::all_at_once;
use crate::called_collective::CalledCollective;
use crate::collective_overdue::CollectiveOverdue;
use crate::job_ranks::Job;
use crate::noted_call::{MeetingNumber, NotedCall};
use crate::rank_list::named;
use crate::rendezvous::WhyAbsent;

/// A rank says no more often than this how much it has called; more often where the deadline is short.
const LONGEST_PERIOD: Duration = Duration::from_secs(1);
/// Two looks of the thread that says it.
const SHORTEST_PERIOD: Duration = Duration::from_millis(200);
const PERIODS_PER_DEADLINE: u32 = 8;

/// What a rank waits in.
#[derive(Default)]
pub(super) struct WaitingRank {
    /// Its oldest unfinished collective, by number, and since when it was seen to be that.
    oldest: Option<(u64, Instant)>,
    /// What it said last, and when.
    said: Option<(Vec<u8>, Instant)>,
    /// When the job was asked last whether another rank gave up.
    asked: Option<Instant>,
}

/// A collective that a rank gave up because of others.
#[derive(Clone)]
pub(super) struct GivenUpCollective {
    by: u32,
    missing: Vec<u32>,
}

/// A rank of this process with a GPU.
struct Watched {
    rank: u32,
    local: Arc<dyn LocalRank>,
    calls: RankCalls,
    /// The number of its oldest unfinished collective, and that.
    oldest: Option<(u64, NotedCall)>,
}

/// Why a collective is not done.
#[derive(Default)]
struct Blame {
    /// Ranks that have not called it.
    missing: Vec<u32>,
    /// Ranks of other processes without a job, which cannot be asked.
    unknown: Vec<u32>,
    /// What another rank called instead.
    other_call: Option<CalledCollective>,
}

impl Watched {
    /// How often the rank says how much it has called, at the most.
    fn period(&self) -> Duration {
        (self.local.deadline() / PERIODS_PER_DEADLINE).clamp(SHORTEST_PERIOD, LONGEST_PERIOD)
    }
}

impl GivenUpCollective {
    fn to_bytes(&self) -> Vec<u8> {
        std::iter::once(self.by).chain(self.missing.iter().copied()).flat_map(u32::to_le_bytes).collect()
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut numbers = bytes.as_chunks().0.iter().copied().map(u32::from_le_bytes);
        Some(Self { by: numbers.next()?, missing: numbers.collect() })
    }
}

impl Membership {
    /// Says how much the ranks of this process have called, and ends communicators of which a collective is overdue.
    pub(super) fn end_overdue(&self) {
        let watched = self.watched();
        let all_here: BTreeMap<u32, RankCalls> =
            watched.iter().map(|one| (one.rank, one.calls.clone())).collect();
        watched.iter().for_each(|one| self.say_calls(one));
        let mut ended: BTreeMap<u32, &Arc<dyn LocalRank>> = BTreeMap::new();
        // Again once one has given up, since that ends those before it as well: no abort is to wait for another.
        for _ in 0..2 {
            for one in &watched {
                if !ended.contains_key(&one.rank)
                    && let Some(told) = self.overdue(one, &all_here)
                {
                    self.say_given_up(one.rank, &told);
                    one.local.end_overdue(told);
                    ended.insert(one.rank, &one.local);
                }
            }
            if ended.is_empty() {
                return;
            }
        }
        let ended: Vec<_> = ended.into_values().collect();
        all_at_once(&ended, |rank| rank.abort());
    }

    /// What a rank is told that has waited for too long, or for which another rank has.
    fn overdue(&self, one: &Watched, all_here: &BTreeMap<u32, RankCalls>) -> Option<CollectiveOverdue> {
        let (call, since) = self.waits_since(one)?;
        let (rank, waited, deadline) = (one.rank, since.elapsed(), one.local.deadline());
        if waited < one.period() {
            return None;
        }
        let given_up = self.given_up_by_another(one);
        let blame = match &given_up {
            Some(given_up) => Blame { missing: given_up.missing.clone(), ..Blame::default() },
            // What others had called by then is known one period later.
            None if waited < deadline.saturating_add(one.period()) => return None,
            None => self.blame(rank, call, all_here)?,
        };
        let is_told = given_up.is_some() || !blame.missing.is_empty() || blame.other_call.is_some();
        if !is_told && waited < deadline.saturating_mul(2) {
            return None;
        }
        let (number, called) = self.part_that_waits(rank, call, &blame.missing, all_here)?;
        Some(CollectiveOverdue {
            communicator: self.id.short(),
            call: called,
            number: number.text(),
            waited,
            missing: blame.missing,
            unknown: blame.unknown,
            given_up_by: given_up.map(|given_up| given_up.by),
            other_call: blame.other_call,
        })
    }

    /// Ranks of this process with GPUs that may wait, or have something to say to ranks that do; none once a rank is lost.
    fn watched(&self) -> Vec<Watched> {
        let ranks: Vec<_> = {
            let state = self.state();
            if !state.lost.is_empty() {
                return Vec::new();
            }
            let here = state.here.iter();
            let has_gpu = here.filter(|(_, entry)| entry.driver.info().kind == DeviceKind::Cuda);
            has_gpu
                .filter_map(|(rank, entry)| Some((*rank, entry.rank.upgrade()?, entry.ledger.clone())))
                .collect()
        };
        let mut watched = Vec::with_capacity(ranks.len());
        for (rank, local, ledger) in ranks {
            let mut ledger = ledger.lock().unwrap_or_else(PoisonError::into_inner);
            ledger.look();
            let oldest = ledger.oldest_waiting().map(|call| (ledger.done(), call.clone()));
            let calls = RankCalls::new(rank, ledger.counts(), oldest.as_ref().map(|(_, call)| call));
            watched.push(Watched { rank, local, calls, oldest });
        }
        watched
    }

    /// Says to the job how much a rank has called, if that has changed.
    fn say_calls(&self, one: &Watched) {
        let Some(job) = &self.job else { return };
        let bytes = one.calls.to_bytes();
        let mut state = self.state();
        let said = &mut state.waits.entry(one.rank).or_default().said;
        let is_due =
            said.as_ref().is_none_or(|(last, when)| *last != bytes && when.elapsed() >= one.period());
        if !is_due {
            return;
        }
        *said = Some((bytes.clone(), Instant::now()));
        drop(state);
        job.say_called(self.id, one.rank, &bytes);
    }

    /// The oldest unfinished call of a rank, and since when it is that.
    fn waits_since<'w>(&self, one: &'w Watched) -> Option<(&'w NotedCall, Instant)> {
        let mut state = self.state();
        let known = &mut state.waits.entry(one.rank).or_default().oldest;
        let Some((number, call)) = &one.oldest else {
            *known = None;
            return None;
        };
        let since = known.filter(|(seen, _)| seen == number).map_or_else(Instant::now, |(_, since)| since);
        *known = Some((*number, since));
        Some((call, since))
    }

    /// What another rank gave up, if one did. The job is asked now and then.
    fn given_up_by_another(&self, one: &Watched) -> Option<GivenUpCollective> {
        let mut state = self.state();
        let known = state.gave_up.clone();
        let asked = &mut state.waits.entry(one.rank).or_default().asked;
        let is_due = asked.is_none_or(|asked| asked.elapsed() >= one.period());
        if known.is_none() && is_due {
            *asked = Some(Instant::now());
        }
        drop(state);
        let ask = || {
            let said = self.job.as_ref().filter(|_| is_due)?.given_up_collective(self.id, one.rank)?;
            GivenUpCollective::parse(&said)
        };
        known.or_else(ask).filter(|given_up| given_up.by != one.rank)
    }

    /// Who has not called what a rank waits in, or has called something else. None while the store does not answer: it is lost if that goes on.
    fn blame(&self, rank: u32, call: &NotedCall, all_here: &BTreeMap<u32, RankCalls>) -> Option<Blame> {
        let mut blame = Blame::default();
        let parts = call.parts(rank);
        for other in (0..self.size).filter(|other| *other != rank) {
            let needed: Vec<_> = parts.iter().filter(|(number, _)| number.needs(other)).collect();
            if needed.is_empty() {
                continue;
            }
            let Some(calls) = self.calls_of(other, all_here) else {
                blame.unknown.push(other);
                continue;
            };
            if needed.iter().any(|(number, _)| !number.is_in(other, &calls.counts)) {
                blame.missing.push(other);
            }
            // A send meets a receive.
            let differs = |[number, what, _]: &&[String; 3]| {
                needed.iter().any(|(own, called)| own.text() == *number && called.what != *what)
            };
            if let (None, Some([_, what, place])) = (&blame.other_call, calls.oldest.iter().find(differs)) {
                blame.other_call =
                    Some(CalledCollective { rank: other, what: what.clone(), place: place.clone() });
            }
        }
        let is_known = self.job.as_ref().is_none_or(|job| job.rendezvous.store_answers().unwrap_or(false));
        is_known.then_some(blame)
    }

    /// The collective of a call that waits for one of these ranks, or the first.
    fn part_that_waits(
        &self,
        rank: u32,
        call: &NotedCall,
        missing: &[u32],
        all_here: &BTreeMap<u32, RankCalls>,
    ) -> Option<(MeetingNumber, CalledCollective)> {
        let parts = call.parts(rank);
        let waits = |(number, _): &&(MeetingNumber, CalledCollective)| {
            missing.iter().any(|other| {
                let calls = self.calls_of(*other, all_here).unwrap_or_default();
                number.needs(*other) && !number.is_in(*other, &calls.counts)
            })
        };
        parts.iter().find(waits).or_else(|| parts.first()).cloned()
    }

    /// How much a rank has called; none where it cannot be asked.
    fn calls_of(&self, rank: u32, all_here: &BTreeMap<u32, RankCalls>) -> Option<RankCalls> {
        if let Some(here) = all_here.get(&rank) {
            return Some(here.clone());
        }
        let said = self.job.as_ref()?.called(self.id, rank);
        // One that has said nothing has not joined yet.
        Some(said.and_then(|said| RankCalls::parse(&said)).unwrap_or_default())
    }

    /// The others are told what a rank gives up, and the job which ranks were late.
    fn say_given_up(&self, rank: u32, told: &CollectiveOverdue) {
        let given_up = GivenUpCollective { by: rank, missing: told.missing.clone() };
        if let Some(job) = &self.job {
            say_late(job, told);
            if told.given_up_by.is_none() {
                job.say_given_up_collective(self.id, &given_up.to_bytes());
            }
        }
        self.state().gave_up.get_or_insert(given_up);
    }
}

/// Says to the job which ranks did not come: this one may end because of that.
fn say_late(job: &Job, told: &CollectiveOverdue) {
    let of_job: Vec<u32> =
        told.missing.iter().filter_map(|rank| job.ranks.get(*rank as usize).copied()).collect();
    if of_job.is_empty() {
        return;
    }
    let (who, number, communicator) = (named(&told.missing), &told.number, &told.communicator);
    let what = format!("{who} did not come to {number} of communicator {communicator}");
    job.rendezvous.say_told(of_job, WhyAbsent::LateInCall(what));
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]
mod tests {
    use super::*;

    #[test]
    fn a_collective_that_was_given_up_is_read_as_it_was_said() {
        let said = GivenUpCollective { by: 2, missing: vec![0, 5] }.to_bytes();
        let read = GivenUpCollective::parse(&said).unwrap();
        assert_eq!((read.by, read.missing), (2, vec![0, 5]));
        assert!(GivenUpCollective::parse(&[]).is_none());
    }
}
