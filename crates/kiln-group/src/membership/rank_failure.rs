//! Ranks that cannot rebuild: their device is lost, or they failed while the others went on.

use std::sync::Arc;

use kiln_driver::Health;
use kiln_operation::CommunicatorId;

use super::{LocalEntry, Membership};
use crate::error::{GroupError, Result};

/// A rank that is in `rebuild`. Another thread may call that again once this has ended.
pub(crate) struct Rebuilding<'a> {
    membership: &'a Membership,
    rank: u32,
}

impl Drop for Rebuilding<'_> {
    fn drop(&mut self) {
        let mut state = self.membership.state();
        state.rebuilding.remove(&self.rank);
        let calls = state.calls.entry(self.rank).or_default();
        calls.end();
        let calls = calls.clone();
        drop(state);
        if let Some(job) = &self.membership.job {
            job.say_calls(self.membership.id, self.rank, &calls);
        }
    }
}

impl Membership {
    /// Why a rank of this process is lost itself, if it is.
    pub(crate) fn own_loss(&self, rank: u32) -> Option<String> {
        let (known, driver) = {
            let state = self.state();
            let reported = state.reported.iter().find(|(known, _)| *known == rank);
            let told = reported.map(|(_, cause)| cause);
            // A process that the job gave up is told by the job.
            let told = told.or_else(|| state.lost.get(&rank).filter(|_| self.job.is_none())).cloned();
            let entry = state.here.get(&rank);
            (entry.and_then(LocalEntry::loss).or(told), entry.map(|entry| entry.driver.clone()))
        };
        known.or_else(|| match driver?.health() {
            Health::Lost(error) => Some(error.to_string()),
            _ => None,
        })
    }

    /// A rank begins to rebuild, with replacements or without.
    ///
    /// # Errors
    /// It has rebuilt the communicator; another thread does so right now.
    pub(crate) fn begin_rebuild(&self, rank: u32, is_replacing: bool) -> Result<Rebuilding<'_>> {
        let mut state = self.state();
        if state.rebuilt.contains(&rank) {
            return Err(GroupError::rebuilt_already(self.id));
        }
        if !state.rebuilding.insert(rank) {
            return Err(GroupError::Collective {
                what: format!("another thread rebuilds communicator {:?} as rank {rank}", self.id),
                next: "rebuild it from one thread of each rank, and pass clones of the new one on",
            });
        }
        let calls = state.calls.entry(rank).or_default();
        calls.begin(is_replacing);
        let own = calls.clone();
        let mut all = state.calls.clone();
        drop(state);
        if let Some(job) = &self.job {
            job.say_calls(self.id, rank, &own);
            all = job.calls(self.id);
        }
        let before = all.into_iter().map(|(other, calls)| (other, calls.bytes().len())).collect();
        self.state().calls_before.insert(rank, before);
        Ok(Rebuilding { membership: self, rank })
    }

    /// The ranks of the communicator that takes the place of this one. They are kept until each rank of this process has come to it, or has failed to: what became of
    /// the first is told to the last.
    pub(crate) fn successor(&self, id: CommunicatorId, ranks: &[u32], losses_seen: usize) -> Arc<Self> {
        let fresh = self.child(id, ranks, losses_seen);
        if self.job.is_none() {
            let mut state = self.state();
            if !state.successors.iter().any(|(known, _)| Arc::ptr_eq(known, &fresh)) {
                state.successors.push((fresh.clone(), 0));
            }
        }
        fresh
    }

    /// A rank has come to that communicator, or has failed to.
    pub(crate) fn note_come(&self, successor: &Arc<Self>) {
        let mut state = self.state();
        for (known, come) in &mut state.successors {
            *come += u32::from(Arc::ptr_eq(known, successor));
        }
        let (over, kept) =
            std::mem::take(&mut state.successors).into_iter().partition(|(known, come)| *come >= known.size);
        state.successors = kept;
        drop(state);
        drop::<Vec<_>>(over);
    }
}
