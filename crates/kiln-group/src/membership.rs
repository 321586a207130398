//! The ranks of a communicator: which are in this process, which are lost, and what they agree on afterwards.
//!
//! Ranks that one process made together share one of these. Ranks of several processes have a [`Rendezvous`] in common, which says when a process is lost.

mod absent_replacement;
mod agreement;
mod departed_rank;
mod library_failure;
mod overdue;
mod rank_calls;
mod rank_failure;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use kiln_driver::{DeviceKey, DeviceKind, Driver, Health};
use kiln_operation::CommunicatorId;
use kiln_runtime::StateWatch;
use kiln_runtime::device_state::Phase;

use crate::abort::{LoadedRank, all_at_once};
use crate::collective_overdue::CollectiveOverdue;
use crate::job_ranks::{Job, LEFT_JOB};
use crate::ledger::Ledger;
use crate::lost_device::health_beside;
use crate::rebuild_calls::RebuildCalls;
use crate::rendezvous::LostRank;
use crate::seat::{Application, Seat};
use departed_rank::{DROPPED, name_all};
use overdue::{GivenUpCollective, WaitingRank};

/// What the others do to a rank of this process.
pub(crate) trait LocalRank: Send + Sync {
    /// Another rank is lost: everything unfinished of this one is said to be ended. Whether it is to be aborted then: once.
    fn end(&self, lost: &LostRank) -> bool;

    /// Has its device end it.
    fn abort(&self);

    /// Why its library failed, if it did.
    fn failure(&self) -> Option<String>;

    /// Its device was shut down: what it submitted is done, and it comes to no later collective. False while it cannot say that yet.
    fn stop(&self) -> bool;

    /// Its library failed: everything unfinished of it is said to be ended, and its device ends it.
    fn fail(&self, why: &str);

    /// How long a collective may wait for other ranks.
    fn deadline(&self) -> Duration;

    /// A collective was not done by the deadline: everything unfinished of this rank is said to be ended. It is to be aborted then.
    fn end_overdue(&self, told: CollectiveOverdue);
}

/// A rank of this process, as far as it can be looked at without keeping it.
pub(crate) struct LocalEntry {
    pub(crate) rank: Weak<dyn LocalRank>,
    pub(crate) state: StateWatch,
    /// How often the state of the device had changed when the rank was made. A device that was lost and rebuilt since has lost the rank.
    pub(crate) changes: u64,
    pub(crate) driver: Arc<dyn Driver>,
    pub(crate) ledger: Arc<Mutex<Ledger>>,
}

impl LocalEntry {
    /// Why its device is lost, if it is known to be.
    fn loss(&self) -> Option<String> {
        let status = self.state.status();
        match status.phase() {
            Phase::Lost | Phase::Rebuilding | Phase::Failed => {
                Some(status.state.cause().map_or_else(String::new, |cause| cause.to_string()))
            }
            Phase::Ready if status.changes != self.changes => {
                Some("its device was lost, and rebuilt since".into())
            }
            // It may have been lost while it was shut down: then it has not left as planned.
            Phase::ShuttingDown | Phase::Stopped => self.state.fault().map(|cause| cause.to_string()),
            _ => None,
        }
    }
}

pub(crate) struct Membership {
    id: CommunicatorId,
    size: u32,
    pub(crate) job: Option<Job>,
    /// Whether its ranks have simulated devices in several processes.
    pub(crate) is_bridged: bool,
    /// Losses of the job before the communicator was made.
    pub(crate) losses_before: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Communicators that were made of these ranks.
    children: HashMap<CommunicatorId, Weak<Membership>>,
    here: BTreeMap<u32, LocalEntry>,
    lost: BTreeMap<u32, String>,
    /// Ranks that were given up by their threads, until the others are told.
    reported: Vec<(u32, String)>,
    /// Collectives that ranks had submitted which are not here any more, where that can be compared.
    reported_counts: BTreeMap<u32, u64>,
    /// Ranks that were dropped as planned, and how many collectives they had submitted, where that can be compared.
    left: BTreeMap<u32, Departure>,
    /// Ranks whose library failed, and since when that is known.
    failing: BTreeMap<u32, Instant>,
    /// What ranks with GPUs wait in, and what was said of it.
    waits: BTreeMap<u32, WaitingRank>,
    /// The first rank of this process that gave up a collective because of others.
    gave_up: Option<GivenUpCollective>,
    /// What ranks whose threads have panicked have loaded.
    given_up: Vec<LoadedRank>,
    /// The same once they were aborted: the device is not to take them for ranks that left as planned.
    kept: Vec<LoadedRank>,
    rounds: HashMap<String, Round>,
    /// Losses of the job that were looked at.
    losses_seen: usize,
    /// Replacements in this process that have no place yet, by the rank they replace, and places that were given and not taken yet.
    applications: BTreeMap<u32, Applicant>,
    seats: HashMap<Application, Seat>,
    /// Lost ranks that have a replacement, until another rank is lost.
    filled: BTreeSet<u32>,
    /// Ranks that replacements were to become when the communicator was made.
    replaced: BTreeSet<u32>,
    /// Ranks of this process that have rebuilt the communicator.
    rebuilt: BTreeSet<u32>,
    /// Those that are rebuilding it.
    rebuilding: BTreeSet<u32>,
    /// How the ranks of this process were asked to, and how often each rank had been when one of these was.
    calls: BTreeMap<u32, RebuildCalls>,
    calls_before: BTreeMap<u32, BTreeMap<u32, usize>>,
    /// Communicators that take the place of this one, until all ranks have come to them, and how many have.
    successors: Vec<(Arc<Membership>, u32)>,
}

/// A replacement in this process.
struct Applicant {
    application: Application,
    device: DeviceKey,
    /// The place that it is given if all ranks that are left agree.
    offered: Option<Seat>,
}

/// How a rank left as planned.
struct Departure {
    /// How many were known to have left before it. One that leaves because of another one comes after it.
    after: usize,
    /// Collectives that it had submitted, where that can be compared and no simulated machine knows of it.
    submitted: Option<u64>,
    /// The same on every device.
    count: Option<u64>,
    how: &'static str,
}

/// What ranks say to each other once.
#[derive(Default)]
struct Round {
    said: BTreeMap<u32, Vec<u8>>,
    /// All ranks that were not lost have said something.
    is_complete: bool,
}

impl Membership {
    /// The ranks of a new communicator.
    pub(crate) fn new(id: CommunicatorId, size: u32) -> Arc<Self> {
        Self::made(id, size, None, (0, false))
    }

    /// Those that are processes of a job, which had so many losses before.
    pub(crate) fn of_job(id: CommunicatorId, size: u32, job: Job, losses_seen: usize) -> Arc<Self> {
        Self::made(id, size, Some(job), (losses_seen, false))
    }

    /// Those with simulated devices in several processes of a job.
    pub(crate) fn bridged(id: CommunicatorId, size: u32, job: Job, losses_seen: usize) -> Arc<Self> {
        Self::made(id, size, Some(job), (losses_seen, true))
    }

    fn made(
        id: CommunicatorId,
        size: u32,
        job: Option<Job>,
        (losses_seen, is_bridged): (usize, bool),
    ) -> Arc<Self> {
        let state = Mutex::new(State { losses_seen, ..State::default() });
        Arc::new(Self {
            id,
            size,
            job,
            is_bridged,
            losses_before: losses_seen,
            state,
            changed: Condvar::new(),
        })
    }

    /// The ranks of a communicator that is made of some of these, after so many losses of their job: the same for all of them in this process.
    pub(crate) fn child(&self, id: CommunicatorId, ranks: &[u32], losses_seen: usize) -> Arc<Self> {
        let mut state = self.state();
        if let Some(known) = state.children.get(&id).and_then(Weak::upgrade) {
            return known;
        }
        let job = self.job.as_ref().map(|job| Job {
            rendezvous: job.rendezvous.clone(),
            ranks: ranks.iter().filter_map(|rank| job.ranks.get(*rank as usize).copied()).collect(),
        });
        let fresh = Self::made(id, ranks.len() as u32, job, (losses_seen, self.is_bridged));
        state.children.insert(id, Arc::downgrade(&fresh));
        fresh
    }

    /// Whether this process has ranks of it that have not left.
    pub(crate) fn has_ranks_here(&self) -> bool {
        let state = self.state();
        state.here.keys().any(|rank| !state.left.contains_key(rank))
    }

    pub(crate) fn enter(&self, rank: u32, entry: LocalEntry) {
        self.state().here.insert(rank, entry);
    }

    /// A rank leaves as planned, unless its device is lost: then it is lost, too, and the answer is false. Its device is watched further while it has something to do that the others
    /// wait for.
    pub(crate) fn leave(&self, rank: u32) -> bool {
        let device = self.state().here.get(&rank).map(|entry| (entry.loss(), entry.driver.clone()));
        if let Some((loss, driver)) = device {
            let asked = || match driver.health() {
                Health::Lost(error) => Some(error.to_string()),
                _ => None,
            };
            if let Some(cause) = loss.or_else(asked) {
                self.report(rank, cause, None);
                return false;
            }
        }
        let mut state = self.state();
        let is_over = |entry: &LocalEntry| {
            let mut ledger = entry.ledger.lock().unwrap_or_else(PoisonError::into_inner);
            ledger.settle();
            !ledger.may_wait()
        };
        let entry = state.here.get(&rank);
        let count = entry.and_then(|entry| comparable(&entry.ledger).map(|(count, _)| count));
        // A simulated machine itself knows that a rank is gone, and what waits for it.
        let is_cuda = entry.is_some_and(|entry| entry.driver.info().kind == DeviceKind::Cuda);
        let submitted = count.filter(|_| is_cuda);
        let after = state.left.len();
        state.left.entry(rank).or_insert(Departure { after, submitted, count, how: DROPPED });
        if state.here.get(&rank).is_some_and(is_over) {
            state.here.remove(&rank);
        }
        drop(state);
        if let Some(job) = &self.job {
            job.say_left(self.id, rank, submitted);
        }
        true
    }

    /// Looks which ranks have left the job as planned, if a rank of this process waits.
    fn look_who_left(&self) {
        let Some(job) = &self.job else { return };
        let known: Vec<u32> = {
            let state = self.state();
            let may_wait = |entry: &LocalEntry| comparable(&entry.ledger).is_some_and(|(_, waits)| waits);
            if self.is_bridged || !state.here.values().any(may_wait) {
                return;
            }
            state.left.keys().chain(state.lost.keys()).copied().collect()
        };
        for (rank, submitted) in job.left(self.id, |rank| known.contains(&rank)) {
            let mut state = self.state();
            let after = state.left.len();
            let departure = Departure { after, submitted, count: submitted, how: LEFT_JOB };
            state.left.entry(rank).or_insert(departure);
        }
    }

    /// Ranks that were dropped while another rank waits for them in a collective, the first one first.
    fn missed(&self) -> Vec<(u32, String)> {
        let state = self.state();
        let mut missed = Vec::new();
        let mut departures: Vec<_> = state.left.iter().collect();
        departures.sort_by_key(|(_, departure)| departure.after);
        for (left, departure) in departures {
            let Some(submitted) = departure.submitted else { continue };
            let waits = |(rank, entry): (&u32, &LocalEntry)| {
                let waits =
                    comparable(&entry.ledger).is_some_and(|(count, waits)| waits && count > submitted);
                (waits && !state.left.contains_key(rank)).then_some(*rank)
            };
            if let Some(rank) = state.here.iter().find_map(waits) {
                let how = departure.how;
                let plural = if submitted == 1 { "" } else { "s" };
                let cause = format!(
                    "{how} after {submitted} collective{plural}, and rank {rank} waits in a later one"
                );
                missed.push((*left, cause));
            }
        }
        let mut ranks: Vec<u32> = missed.iter().map(|(rank, _)| *rank).collect();
        ranks.sort_unstable();
        name_all(&mut missed, &ranks);
        missed
    }

    /// A rank is given up: by its thread, or with its device.
    pub(crate) fn report(&self, rank: u32, cause: String, loaded: Option<LoadedRank>) {
        if let Some(job) = &self.job {
            job.rendezvous.give_up(&cause);
        }
        let ledger = self.state().here.get(&rank).map(|entry| entry.ledger.clone());
        let count = ledger.and_then(|ledger| departed_rank::count(&ledger));
        let mut state = self.state();
        state.here.remove(&rank);
        state.reported_counts.extend(count.map(|count| (rank, count)));
        state.reported.push((rank, cause));
        state.given_up.extend(loaded);
    }

    /// The ranks that are lost.
    pub(crate) fn lost(&self) -> Vec<LostRank> {
        self.lost_so_far().0
    }

    /// The same, and how many losses of the job were looked at for it.
    pub(crate) fn lost_so_far(&self) -> (Vec<LostRank>, usize) {
        let state = self.state();
        let lost = state.lost.iter().map(|(rank, cause)| LostRank { rank: *rank, cause: cause.clone() });
        (lost.collect(), state.losses_seen)
    }

    /// Looks which ranks are lost, and tells the others. `asks` also asks devices of which nothing was heard while a collective waits.
    pub(crate) fn look(&self, asks: bool) {
        let mut found = std::mem::take(&mut self.state().reported);
        let mut devices: Vec<(u32, Arc<dyn Driver>)> = Vec::new();
        let mut ledgers = Vec::new();
        for (rank, entry) in &self.state().here {
            let phase = entry.state.status().phase();
            match entry.loss() {
                Some(cause) => found.push((*rank, cause)),
                None if asks && !matches!(phase, Phase::ShuttingDown | Phase::Stopped) => {
                    devices.push((*rank, entry.driver.clone()));
                    ledgers.push(entry.ledger.clone());
                }
                None => {}
            }
        }
        let is_waiting = ledgers.iter().any(waits);
        // What is unfinished keeps the device.
        drop(ledgers);
        if is_waiting {
            for (rank, device) in devices {
                if let Health::Lost(error) = health_beside(&*device) {
                    found.push((rank, error.to_string()));
                }
            }
        }
        // Before the losses of the job: a rank that leaves because another one was lost is not the first.
        if asks {
            self.look_who_left();
            self.look_who_stopped();
        }
        let mut losses_seen = self.state().losses_seen;
        if let Some(job) = &self.job {
            // So far a rank of this process, whose device others do not see.
            if let Some((_, cause)) = found.first() {
                job.rendezvous.give_up(cause);
            }
            let lost;
            (lost, losses_seen) = job.lost(self.id, losses_seen);
            found.extend(
                lost.into_iter().map(|(rank, cause)| (rank, self.named_replacement(job, rank, cause))),
            );
        }
        let missed = self.missed();
        if let (Some(job), Some((rank, _))) = (&self.job, missed.first()) {
            job.say_told_left(*rank);
        }
        found.extend(missed);
        if self.job.is_none() {
            found = self.with_departed(found);
        }
        if asks && found.is_empty() {
            self.end_failing();
            self.end_overdue();
        }
        let lost = self.record(found, losses_seen);
        let ended: Vec<Arc<dyn LocalRank>> = lost.iter().flat_map(|lost| self.declare(lost)).collect();
        // What a rank had queued when it was given up would wait for the others.
        let given_up = std::mem::take(&mut self.state().given_up);
        if ended.is_empty() && given_up.is_empty() {
            return;
        }
        let ended = ended.iter().map(Aborted::Told);
        let all: Vec<Aborted<'_>> = ended.chain(given_up.iter().map(Aborted::GivenUp)).collect();
        all_at_once(&all, Aborted::abort);
        self.state().kept.extend(given_up);
    }

    /// Takes note of lost ranks, and of how many losses of the job were looked at, in one step. Those that were not known.
    fn record(&self, found: Vec<(u32, String)>, losses_seen: usize) -> Vec<LostRank> {
        let mut state = self.state();
        state.losses_seen = losses_seen;
        let mut fresh = Vec::new();
        for (rank, cause) in found {
            if let Entry::Vacant(vacant) = state.lost.entry(rank) {
                vacant.insert(cause.clone());
                fresh.push(LostRank { rank, cause });
            }
        }
        if !fresh.is_empty() && state.rebuilt.is_empty() {
            state.filled.clear();
        }
        fresh
    }

    /// A rank is lost; the others of this process are told. Those that are to be aborted now.
    fn declare(&self, lost: &LostRank) -> Vec<Arc<dyn LocalRank>> {
        // A rank that the job goes on without is told that it is lost itself, unless its device says so.
        let is_given_up = self.job.as_ref().is_some_and(|job| job.rendezvous.given_up().is_some());
        let others: Vec<Arc<dyn LocalRank>> = {
            let state = self.state();
            let others = state
                .here
                .iter()
                .filter(|(rank, entry)| **rank != lost.rank || is_given_up && entry.loss().is_none());
            others.filter_map(|(_, entry)| entry.rank.upgrade()).collect()
        };
        self.changed.notify_all();
        others.into_iter().filter(|rank| rank.end(lost)).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A rank that is to be aborted.
enum Aborted<'a> {
    /// It was told of the loss of another.
    Told(&'a Arc<dyn LocalRank>),
    /// Its thread has given it up.
    GivenUp(&'a LoadedRank),
}

impl Aborted<'_> {
    fn abort(&self) {
        match self {
            Self::Told(rank) => rank.abort(),
            Self::GivenUp(rank) => rank.abort(),
        }
    }
}

/// How many collectives a rank has submitted and whether one of them may wait; none where ranks submit different numbers of them, or it is not known.
fn comparable(ledger: &Arc<Mutex<Ledger>>) -> Option<(u64, bool)> {
    let mut ledger = ledger.try_lock().ok()?;
    ledger.look();
    (!ledger.has_graphs && !ledger.has_pairs).then(|| (ledger.submitted, ledger.may_wait()))
}

/// Whether a rank waits for a collective.
fn waits(ledger: &Arc<Mutex<Ledger>>) -> bool {
    // A rank that is submitting does not wait.
    let Ok(mut ledger) = ledger.try_lock() else { return false };
    ledger.look();
    ledger.may_wait()
}
