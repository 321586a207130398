//! Ranks of this process whose library failed: which rank is behind it is found out first.
//!
//! The library may tell of a rank that the job takes for alive: one that hangs, or whose network is cut, keeps its connections open. So the job has every rank answer,
//! and those that do not are lost. Ranks that were told of a lost rank are left alone: their library fails because of it, and goes on to fail while much queued work is
//! aborted.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kiln_driver::DeviceKind;

use super::{LocalEntry, LocalRank, Membership, waits};

/// How long a library has failed before its rank is ended for it: the loss of a rank that is behind it is told first, where it is known.
const FAILURE_PATIENCE: Duration = Duration::from_secs(2);
/// What NCCL answers when it has lost the connection to another rank.
const REMOTE_ERROR: &str = "ncclRemoteError";

impl Membership {
    /// Finds lost ranks behind libraries that fail, and ends ranks whose library has failed for a while.
    pub(super) fn end_failing(&self) {
        let waiting: Vec<(u32, Arc<dyn LocalRank>)> = {
            let state = self.state();
            if !state.lost.is_empty() {
                return;
            }
            let has_library = |entry: &LocalEntry| entry.driver.info().kind == DeviceKind::Cuda;
            let waiting = state.here.iter().filter(|(_, entry)| has_library(entry) && waits(&entry.ledger));
            waiting.filter_map(|(rank, entry)| Some((*rank, entry.rank.upgrade()?))).collect()
        };
        for (rank, local) in waiting {
            let Some(why) = local.failure() else { continue };
            let since = *self.state().failing.entry(rank).or_insert_with(Instant::now);
            if since.elapsed() >= FAILURE_PATIENCE {
                local.fail(&why);
            } else {
                self.find_lost();
            }
        }
    }

    /// Has the job find out which ranks do not answer. To be called over and over while a library fails.
    pub(crate) fn find_lost(&self) {
        if let Some(job) = &self.job {
            job.rendezvous.find_lost();
        }
    }

    /// Ranks that may be behind a failure: of two ranks the other one, if the library says that it is not this one.
    pub(crate) fn suspects(&self, rank: u32, why: &str) -> Vec<u32> {
        match self.size == 2 && why.contains(REMOTE_ERROR) {
            true => vec![1 - rank.min(1)],
            false => Vec::new(),
        }
    }
}
