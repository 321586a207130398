//! Calls of ranks that exchange data on their own, such as by NCCL: what they call is compared through the store before it is queued.

use std::panic::Location;
use std::sync::Mutex;
use std::time::Duration;

use kiln_operation::CommunicatorId;

use super::{Bridge, Caller, Counts};
use crate::collective_part::Part;
use crate::error::Result;
use crate::job_ranks::Job;
use crate::transfer;

impl Bridge {
    /// One that carries what ranks call, and no values.
    pub(crate) fn for_calls(
        (job, losses_before): (&Job, usize),
        id: CommunicatorId,
        (rank, size): (u32, u32),
        deadline: Duration,
    ) -> Self {
        let counts = Mutex::new(Counts::default());
        // The id of a library is as long as a key may be.
        let name = transfer::communicator_name(&format!("calls {}", id.short()));
        Self { job: job.clone(), losses_before, id, name, rank, size, deadline, counts }
    }

    /// Waits until all ranks have come to a call; a send does not wait for its receive.
    ///
    /// # Errors
    /// Another rank calls something else, with both lines; ranks that do not come; sends that wait for each other.
    pub(crate) fn compare(&self, parts: &[Part], place: &'static Location<'static>) -> Result<()> {
        let mut counts = self.counts();
        self.check_given_up(&counts)?;
        let caller = Caller { place, number: counts.calls };
        counts.calls += 1;
        self.exchange(&mut counts, (parts, caller), vec![Vec::new(); parts.len()], |_, _| Ok(()))
    }
}
