//! Calls of simulated ranks that do not meet, with their lines.

use std::panic::Location;

use kiln_driver::Refusal;
use kiln_runtime::Error;
use kiln_runtime::internal::note_finding;

use super::DeviceCommunicator;
use crate::collective_part::Part;
use crate::error::GroupError;

impl DeviceCommunicator {
    /// A call was submitted, in the order of the calls of this rank. The error of a receive that shows that sends wait for each other; `tell_crossing` is to be called with it.
    pub(crate) fn log(&self, parts: &[Part], place: &'static Location<'static>) -> Option<GroupError> {
        let sends = self.inner.log.as_ref()?.note(self.rank(), parts, place)?;
        Some(GroupError::CrossingSends { sends })
    }

    /// Tells all ranks of this process: none of them could go on.
    #[cold]
    pub(crate) fn tell_crossing(&self, error: GroupError) -> GroupError {
        let told = error.to_string();
        note_finding(&told);
        let log = self.inner.log.iter();
        log.flat_map(|log| log.local_ranks()).for_each(|rank| rank.fail(&told));
        error
    }

    /// The error of a submission that the device refused, with both calls where it differs from that of another rank.
    #[cold]
    pub(crate) fn refused_call(
        &self,
        source: Error,
        (parts, place): (&[Part], &'static Location<'static>),
    ) -> GroupError {
        let refusal = source.driver().and_then(kiln_driver::Error::refusal);
        let other = match refusal {
            Some(Refusal::Disagreement { other_rank, .. }) => Some((self.rank(), *other_rank)),
            _ => None,
        };
        let calls = |ranks| self.inner.log.as_ref()?.calls_of(ranks, parts, place);
        match (self.refused(source), other.and_then(calls)) {
            (GroupError::Rank { rank, source }, Some(calls)) => {
                GroupError::OtherCollective { rank, call: Box::new(calls), source }
            }
            (error, _) => error,
        }
    }
}
