//! Ranks of one group that have left when another one is lost: they come to no rebuild, and may be why it is lost.

use std::sync::{Arc, Mutex, PoisonError};

use kiln_driver::DeviceKind;
use kiln_runtime::device_state::Phase;

use super::{Departure, LocalEntry, Membership, comparable};
use crate::ledger::Ledger;
use crate::rank_list::named;

pub(super) const DROPPED: &str = "its `DeviceCommunicator` was dropped";
const SHUT_DOWN: &str = "its device was shut down";
/// The same of a rank of another process, which does not say how.
const GONE: &str = "its `DeviceCommunicator` was dropped, or its device shut down";

/// How a rank has left, and after how many collectives, where that can be compared.
struct Departed {
    rank: u32,
    how: &'static str,
    count: Option<u64>,
}

impl Membership {
    /// Looks which ranks of other processes were dropped, once this rank rebuilds without a lost one: they do not come.
    pub(crate) fn look_who_dropped(&self, rank: u32) {
        let Some(job) = &self.job else { return };
        let known: Vec<u32> = self.state().lost.keys().copied().chain([rank]).collect();
        let dropped = job.dropped(self.id, |rank| known.contains(&rank));
        let found = dropped.into_iter().map(|rank| (rank, GONE.to_owned())).collect();
        let losses_seen = self.state().losses_seen;
        // This rank was told of the first loss, and takes no more calls.
        self.record(found, losses_seen);
    }

    /// Looks which ranks of this process have had their device shut down: they come to no later collective, as if they had been dropped. A simulated machine itself knows that of its
    /// devices.
    pub(super) fn look_who_stopped(&self) {
        let stopped: Vec<_> = {
            let state = self.state();
            let is_stopped = |(rank, entry): &(&u32, &LocalEntry)| {
                let is_off = match entry.state.status().phase() {
                    Phase::Stopped => true,
                    // What it has on the device waits for no other rank.
                    Phase::ShuttingDown => self.is_bridged,
                    _ => false,
                };
                is_off && entry.loss().is_none() && !state.left.contains_key(rank)
            };
            let stopped = state.here.iter().filter(is_stopped);
            stopped
                .map(|(rank, entry)| {
                    let is_cuda = entry.driver.info().kind == DeviceKind::Cuda;
                    (*rank, entry.rank.upgrade(), entry.ledger.clone(), is_cuda)
                })
                .collect()
        };
        for (rank, local, ledger, is_cuda) in stopped {
            if !(self.job.is_some() || is_cuda) || local.is_some_and(|local| !local.stop()) {
                continue;
            }
            let count = comparable(&ledger).map(|(count, _)| count);
            let submitted = count.filter(|_| is_cuda);
            let mut state = self.state();
            let after = state.left.len();
            state.left.entry(rank).or_insert(Departure { after, submitted, count, how: SHUT_DOWN });
            drop(state);
            if let Some(job) = &self.job {
                job.say_left(self.id, rank, submitted);
            }
        }
    }

    /// Ranks that are found to be lost, and those that have left before: first the ones that a lost rank waited for, which a simulated machine ends with its device.
    pub(super) fn with_departed(&self, mut found: Vec<(u32, String)>) -> Vec<(u32, String)> {
        let (departed, waiting, ended) = {
            let state = self.state();
            let is_known = |rank: &u32| state.lost.contains_key(rank);
            let is_fresh = found.iter().any(|(rank, _)| !is_known(rank));
            if !is_fresh || !state.rebuilt.is_empty() {
                return found;
            }
            let dropped = state.left.iter().map(|(rank, departure)| {
                let how = departure.how;
                (Departed { rank: *rank, how, count: departure.count }, None)
            });
            let is_off = |entry: &LocalEntry| {
                matches!(entry.state.status().phase(), Phase::ShuttingDown | Phase::Stopped)
            };
            let stopped =
                state.here.iter().filter(|(rank, entry)| is_off(entry) && !state.left.contains_key(rank));
            let stopped = stopped.map(|(rank, entry)| {
                (Departed { rank: *rank, how: SHUT_DOWN, count: None }, Some(entry.ledger.clone()))
            });
            let is_found = |rank: u32| found.iter().any(|(lost, _)| *lost == rank);
            let departed: Vec<_> = dropped
                .chain(stopped)
                .filter(|(departed, _)| !is_known(&departed.rank) && !is_found(departed.rank))
                .collect();
            let ledger = |rank: &u32| Some((*rank, state.here.get(rank)?.ledger.clone()));
            let waiting: Vec<_> = found.iter().filter_map(|(rank, _)| ledger(rank)).collect();
            // Some are not here any more.
            let ended = |rank: &u32| Some((*rank, *state.reported_counts.get(rank)?));
            let ended: Vec<_> = found.iter().filter_map(|(rank, _)| ended(rank)).collect();
            (departed, waiting, ended)
        };
        let waiting = waiting.iter().filter_map(|(rank, ledger)| Some((*rank, count(ledger)?)));
        let waiting: Vec<_> = ended.into_iter().chain(waiting).collect();
        let (mut all, mut gone) = (Vec::new(), Vec::new());
        for (Departed { rank, how, count: known }, ledger) in departed {
            let known = known.or_else(|| count(ledger.as_ref()?));
            let waits = |known: u64| waiting.iter().find(|(_, count)| *count > known);
            match known.and_then(|known| Some((known, waits(known)?.0))) {
                Some((known, other)) => {
                    let plural = if known == 1 { "" } else { "s" };
                    let when =
                        format!("after {known} collective{plural}, and rank {other} waits in a later one");
                    gone.push(rank);
                    all.push((rank, format!("{how} {when}")));
                }
                None => found.push((rank, how.to_owned())),
            }
        }
        name_all(&mut all, &gone);
        all.extend(found);
        all
    }
}

/// Has the cause of each of several ranks that are waited for name all of them: only the first is told.
pub(super) fn name_all(departed: &mut [(u32, String)], ranks: &[u32]) {
    if ranks.len() > 1 {
        let all = format!("; {} have gone", named(ranks));
        departed.iter_mut().for_each(|(_, cause)| cause.push_str(&all));
    }
}

/// Collectives that a rank has submitted; none where ranks submit different numbers of them.
pub(super) fn count(ledger: &Arc<Mutex<Ledger>>) -> Option<u64> {
    let ledger = ledger.lock().unwrap_or_else(PoisonError::into_inner);
    (!ledger.has_graphs && !ledger.has_pairs).then_some(ledger.submitted)
}
