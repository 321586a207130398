//! Replacements that are lost after all ranks have agreed on them and before they have joined the new communicator.

use super::Membership;
use crate::job_ranks::Job;

impl Membership {
    /// These ranks are given to replacements.
    pub(crate) fn note_replaced(&self, ranks: impl IntoIterator<Item = u32>) {
        self.state().replaced.extend(ranks);
    }

    /// A replacement has joined.
    pub(crate) fn note_joined(&self, rank: u32) {
        if let Some(job) = &self.job {
            job.say_joined(self.id, rank);
        }
    }

    /// The cause of a loss, which says so where the rank is a replacement that had not joined yet.
    pub(super) fn named_replacement(&self, job: &Job, rank: u32, cause: String) -> String {
        let is_replaced = {
            let state = self.state();
            state.replaced.contains(&rank) && !state.lost.contains_key(&rank)
        };
        match is_replaced && !job.has_joined(self.id, rank) {
            true => format!("its replacement was lost before it joined this communicator: {cause}"),
            false => cause,
        }
    }
}
