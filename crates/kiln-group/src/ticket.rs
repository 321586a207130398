//! Work on several devices that can be waited for.

use std::time::{Duration, Instant};

use kiln_runtime::Ticket;

use crate::error::{GroupError, Result};

/// Work on several devices: copies between them, a scatter, a gather. It can be waited for or dropped.
///
/// It is done when the work of every device that takes part is done. If one of them is lost meanwhile, that is the answer, and the destination
/// must not be relied upon; buffers of other devices are as they were.
#[derive(Clone, Debug)]
pub struct GroupTicket {
    /// With the place of the device.
    parts: Vec<(usize, Ticket)>,
}

impl GroupTicket {
    pub(crate) fn new(parts: Vec<(usize, Ticket)>) -> Self {
        Self { parts }
    }

    /// Both.
    pub(crate) fn join(&mut self, other: Self) {
        self.parts.extend(other.parts);
    }

    /// The submissions it stands for, with the place of the device of each.
    pub fn parts(&self) -> &[(usize, Ticket)] {
        &self.parts
    }

    /// Whether all of it is done.
    ///
    /// # Errors
    /// The fault, if a device is lost, with the place of the device.
    pub fn is_done(&self) -> Result<bool> {
        let mut done = true;
        for (index, ticket) in &self.parts {
            done &= ticket.is_done().map_err(GroupError::at(*index))?;
        }
        Ok(done)
    }

    /// Waits for all of it.
    ///
    /// # Errors
    /// The first fault, if a device is lost; the work of the others was waited for.
    #[track_caller]
    pub fn wait(&self) -> Result<()> {
        let mut waited = Ok(());
        // No closure, in which the caller's line would not be known.
        for (index, ticket) in &self.parts {
            waited = waited.and(ticket.wait().map_err(GroupError::at(*index)));
        }
        waited
    }

    /// As [`wait`](Self::wait), but no longer than this for all of it; false if time ran out. On a simulated device the time is virtual and counts for
    /// each device alone.
    ///
    /// # Errors
    /// As for [`wait`](Self::wait).
    #[track_caller]
    pub fn wait_within(&self, limit: Duration) -> Result<bool> {
        let began = Instant::now();
        let mut in_time = true;
        for (index, ticket) in &self.parts {
            let left = limit.saturating_sub(began.elapsed());
            in_time &= ticket.wait_within(left).map_err(GroupError::at(*index))?;
        }
        Ok(in_time)
    }
}
