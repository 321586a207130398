//! Ranks whose calls are compared before they are queued.

use std::panic::Location;

use super::DeviceCommunicator;
use crate::bridge::Bridge;
use crate::collective_part::Part;
use crate::error::{GroupError, Result};

impl DeviceCommunicator {
    /// Has the calls of this rank compared with those of the other ranks from here on, before each is queued: kind, element type, reduction, root, count, communicator and order. A call that differs is refused
    /// on all ranks with both calls and both lines ([`GroupError::OtherCollective`]), where NCCL would wait for ever or mix the values up; and so is one to which a rank does not come by the
    /// deadline. To be called on every rank between the same two collectives, as a rule after [`meet`](Self::meet). A communicator that is made of this one is not compared until this is called on
    /// it, too.
    ///
    /// Each call waits for the other ranks on the host and asks the store of the job, which takes longer than most collectives: it is for finding a mistake. A send does not wait. What is recorded in graphs is not
    /// compared. Simulated devices in several processes compare their calls anyway.
    ///
    /// # Errors
    /// Ranks without a job in common; ranks of a simulated machine without one compare their calls anyway, and so does a rank that is alone.
    pub fn compare_calls(&self) -> Result<()> {
        let inner = &self.inner;
        let Some(membership) = inner.membership.as_ref().filter(|_| inner.bridge.is_none()) else {
            return Ok(());
        };
        let Some(job) = &membership.job else {
            return match inner.log {
                Some(_) => Ok(()),
                None => Err(GroupError::Collective {
                    what: "the calls of ranks cannot be compared that have no job in common".into(),
                    next: "join a `Rendezvous` on every rank, and make the communicator with `DeviceCommunicator::meet`",
                }),
            };
        };
        let place = (self.rank(), self.size());
        let job = (job, membership.losses_before);
        inner.compared.get_or_init(|| Bridge::for_calls(job, self.id(), place, inner.rank.deadline));
        Ok(())
    }

    /// Compares a call with those of the others, if calls are compared.
    #[inline]
    pub(crate) fn compare(&self, parts: &[Part], place: &'static Location<'static>) -> Result<()> {
        match self.inner.compared.get() {
            Some(compared) => compared.compare(parts, place).map_err(|error| self.told(error)),
            None => Ok(()),
        }
    }
}
