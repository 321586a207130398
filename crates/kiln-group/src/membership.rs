//! The ranks of a communicator: which are in this process, which are lost, and what they agree on afterwards.
//!
//! Ranks that one process made together share one of these. Ranks of several processes have a [`Rendezvous`] in common, which says when a process is lost.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use kiln_driver::{Driver, Health};
use kiln_operation::CommunicatorId;
use kiln_runtime::device_state::Phase;
use kiln_runtime::{DeviceRuntime, Module, StateWatch};

use crate::abort::{abort, all_at_once};
use crate::error::{GroupError, Result};
use crate::ledger::Ledger;
use crate::rendezvous::{LostRank, Rendezvous, RendezvousError};

/// What the others do to a rank of this process.
pub(crate) trait LocalRank: Send + Sync {
    /// Another rank is lost: everything unfinished of this one is said to be ended. Whether it is to be aborted then: once.
    fn end(&self, lost: &LostRank) -> bool;

    /// Has its device end it.
    fn abort(&self);
}

/// A rank of this process, as far as it can be looked at without keeping it.
pub(crate) struct LocalEntry {
    pub(crate) rank: Weak<dyn LocalRank>,
    pub(crate) state: StateWatch,
    pub(crate) driver: Arc<dyn Driver>,
    pub(crate) ledger: Arc<Mutex<Ledger>>,
}

/// The job of ranks in several processes.
#[derive(Clone)]
pub(crate) struct Job {
    pub(crate) rendezvous: Arc<Rendezvous>,
    /// The rank in the job of each rank of the communicator.
    pub(crate) ranks: Vec<u32>,
}

pub(crate) struct Membership {
    id: CommunicatorId,
    size: u32,
    pub(crate) job: Option<Job>,
    state: Mutex<State>,
    changed: Condvar,
    is_watched: AtomicBool,
}

#[derive(Default)]
struct State {
    /// Communicators that were made of these ranks.
    children: HashMap<CommunicatorId, Weak<Membership>>,
    here: BTreeMap<u32, LocalEntry>,
    lost: BTreeMap<u32, String>,
    /// Ranks that were given up by their threads, until the others are told.
    reported: Vec<(u32, String)>,
    /// What those ranks have loaded.
    given_up: Vec<(DeviceRuntime, Module)>,
    /// The same once they were aborted: the device is not to take them for ranks that left as planned.
    kept: Vec<(DeviceRuntime, Module)>,
    rounds: HashMap<String, Round>,
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
    pub(crate) fn new(id: CommunicatorId, size: u32, job: Option<Job>) -> Arc<Self> {
        let (state, changed, is_watched) = (Mutex::default(), Condvar::new(), AtomicBool::new(false));
        Arc::new(Self { id, size, job, state, changed, is_watched })
    }

    /// The ranks of a communicator that is made of some of these: the same for all of them in this process.
    pub(crate) fn child(&self, id: CommunicatorId, ranks: &[u32]) -> Arc<Self> {
        let mut state = self.state();
        if let Some(known) = state.children.get(&id).and_then(Weak::upgrade) {
            return known;
        }
        let job = self.job.as_ref().map(|job| Job {
            rendezvous: job.rendezvous.clone(),
            ranks: ranks.iter().filter_map(|rank| job.ranks.get(*rank as usize).copied()).collect(),
        });
        let fresh = Self::new(id, ranks.len() as u32, job);
        state.children.insert(id, Arc::downgrade(&fresh));
        fresh
    }

    /// Whether it is to be watched from now on; true once.
    pub(crate) fn begin_watch(&self) -> bool {
        !self.is_watched.swap(true, Ordering::Relaxed)
    }

    pub(crate) fn enter(&self, rank: u32, entry: LocalEntry) {
        self.state().here.insert(rank, entry);
    }

    /// A rank leaves as planned. Its device is watched further while it has something to do that the others wait for.
    pub(crate) fn leave(&self, rank: u32) {
        let mut state = self.state();
        let is_over = |entry: &LocalEntry| {
            let mut ledger = entry.ledger.lock().unwrap_or_else(PoisonError::into_inner);
            ledger.settle();
            !ledger.may_wait()
        };
        if state.here.get(&rank).is_some_and(is_over) {
            state.here.remove(&rank);
        }
    }

    /// The thread of a rank has given it up.
    pub(crate) fn report(&self, rank: u32, cause: String, loaded: Option<(DeviceRuntime, Module)>) {
        let mut state = self.state();
        state.here.remove(&rank);
        state.reported.push((rank, cause));
        state.given_up.extend(loaded);
    }

    /// The ranks that are lost.
    pub(crate) fn lost(&self) -> Vec<LostRank> {
        let state = self.state();
        state.lost.iter().map(|(rank, cause)| LostRank { rank: *rank, cause: cause.clone() }).collect()
    }

    /// Looks which ranks are lost, and tells the others. `asks` also asks devices of which nothing was heard while a collective waits.
    pub(crate) fn look(&self, asks: bool) {
        let mut found = std::mem::take(&mut self.state().reported);
        let mut devices: Vec<(u32, Arc<dyn Driver>)> = Vec::new();
        let mut ledgers = Vec::new();
        for (rank, entry) in &self.state().here {
            let status = entry.state.status();
            match status.phase() {
                Phase::Lost | Phase::Rebuilding | Phase::Failed => {
                    let cause = status.state.cause().map_or_else(String::new, |cause| cause.to_string());
                    found.push((*rank, cause));
                }
                Phase::ShuttingDown | Phase::Stopped => {}
                _ if asks => {
                    devices.push((*rank, entry.driver.clone()));
                    ledgers.push(entry.ledger.clone());
                }
                _ => {}
            }
        }
        if ledgers.iter().any(waits) {
            for (rank, device) in devices {
                if let Health::Lost(error) = device.health() {
                    found.push((rank, error.to_string()));
                }
            }
        }
        if let Some(job) = &self.job {
            found.extend(job.lost());
        }
        let lost = found.into_iter().map(|(rank, cause)| LostRank { rank, cause });
        let ended: Vec<Arc<dyn LocalRank>> = lost.flat_map(|lost| self.declare(&lost)).collect();
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

    /// A rank is lost; the others of this process are told. Those that are to be aborted now.
    fn declare(&self, lost: &LostRank) -> Vec<Arc<dyn LocalRank>> {
        let others: Vec<Arc<dyn LocalRank>> = {
            let mut state = self.state();
            if state.lost.contains_key(&lost.rank) {
                return Vec::new();
            }
            state.lost.insert(lost.rank, lost.cause.clone());
            let others = state.here.iter().filter(|(rank, _)| **rank != lost.rank);
            others.filter_map(|(_, entry)| entry.rank.upgrade()).collect()
        };
        self.changed.notify_all();
        others.into_iter().filter(|rank| rank.end(lost)).collect()
    }

    /// Says something to all ranks that are not lost, and returns what they say, by rank. None if another rank was lost meanwhile: then none of the ranks
    /// has an answer, or all have.
    ///
    /// # Errors
    /// Ranks that did not come within the time limit; the store is lost.
    pub(crate) fn exchange(
        &self,
        rank: u32,
        (name, lost): (&str, &[LostRank]),
        said: &[u8],
        limit: Duration,
    ) -> Result<Option<BTreeMap<u32, Vec<u8>>>> {
        let gone: Vec<String> = lost.iter().map(|lost| lost.rank.to_string()).collect();
        let name = format!("kiln/{}/{name}/without {}", self.id.short(), gone.join(" "));
        match &self.job {
            Some(job) => job.exchange(rank, (&name, lost), said),
            None => self.exchange_here(rank, (&name, lost), said, limit),
        }
    }

    fn exchange_here(
        &self,
        rank: u32,
        (name, lost): (&str, &[LostRank]),
        said: &[u8],
        limit: Duration,
    ) -> Result<Option<BTreeMap<u32, Vec<u8>>>> {
        let end = Instant::now() + limit;
        let size = self.size as usize;
        let mut state = self.state();
        if state.lost.len() == lost.len() {
            let round = state.rounds.entry(name.to_owned()).or_default();
            round.said.insert(rank, said.to_vec());
            round.is_complete |= round.said.len() + lost.len() == size;
            self.changed.notify_all();
        }
        loop {
            if let Some(round) = state.rounds.get(name).filter(|round| round.is_complete) {
                return Ok(Some(round.said.clone()));
            }
            if state.lost.len() != lost.len() {
                return Ok(None);
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let said = state.rounds.get(name).map(|round| &round.said);
                let is_absent = |rank: &u32| {
                    !said.is_some_and(|said| said.contains_key(rank)) && !state.lost.contains_key(rank)
                };
                return Err(GroupError::RanksAbsent {
                    ranks: (0..self.size).filter(is_absent).collect(),
                    waited: limit,
                });
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
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
    GivenUp(&'a (DeviceRuntime, Module)),
}

impl Aborted<'_> {
    fn abort(&self) {
        match self {
            Self::Told(rank) => rank.abort(),
            Self::GivenUp((runtime, module)) => abort(runtime, module),
        }
    }
}

/// Whether a rank waits for a collective.
fn waits(ledger: &Arc<Mutex<Ledger>>) -> bool {
    // A rank that is submitting does not wait.
    let Ok(mut ledger) = ledger.try_lock() else { return false };
    ledger.settle();
    ledger.may_wait()
}

impl Job {
    /// Ranks of the communicator whose processes are lost.
    fn lost(&self) -> Vec<(u32, String)> {
        let place = |rank: u32| self.ranks.iter().position(|known| *known == rank);
        match self.rendezvous.lost_ranks() {
            Ok(lost) => {
                lost.into_iter().filter_map(|lost| Some((place(lost.rank)? as u32, lost.cause))).collect()
            }
            Err(error) => place(0).map(|at| (at as u32, error.to_string())).into_iter().collect(),
        }
    }

    fn exchange(
        &self,
        rank: u32,
        (name, lost): (&str, &[LostRank]),
        said: &[u8],
    ) -> Result<Option<BTreeMap<u32, Vec<u8>>>> {
        self.rendezvous.acknowledge_losses();
        let key = |rank: u32| format!("{name}/{rank}");
        let failed = |error| GroupError::Rendezvous(Arc::new(error));
        self.rendezvous.put(&key(rank), said).map_err(failed)?;
        let is_left = |rank: &u32| lost.iter().all(|lost| lost.rank != *rank);
        let mut heard = BTreeMap::new();
        for other in (0..self.ranks.len() as u32).filter(is_left) {
            match self.rendezvous.get(&key(other)) {
                Ok(value) => heard.insert(other, value),
                Err(RendezvousError::RankLost { .. }) => return Ok(None),
                Err(error) => return Err(failed(error)),
            };
        }
        Ok(Some(heard))
    }
}
