//! Where the submissions of a sequence go, with its deadline and its clock.

use std::time::Duration;

use kiln_runtime::{DeviceRuntime, Error, GraphBuilder, Result, Ticket, Timing};

use crate::error::ProgramError;

/// Where the submissions of a sequence go.
pub(crate) struct Queue {
    pub(crate) runtime: DeviceRuntime,
    /// The first program of the sequence, for messages.
    program: String,
    deadline: Option<Deadline>,
    profile: bool,
    pub(crate) timing: Option<Timing>,
}

/// A moment on the device's clock.
struct Deadline {
    at: Duration,
    limit: Duration,
}

impl Queue {
    pub(crate) fn new(
        runtime: DeviceRuntime,
        program: String,
        limit: Option<Duration>,
        profile: bool,
    ) -> Self {
        let now = runtime.driver().clock().now();
        let deadline = limit.map(|limit| Deadline { at: now.saturating_add(limit), limit });
        Self { runtime, program, deadline, profile, timing: None }
    }

    /// Submits everything a builder recorded. Where time is taken, it is also waited for, so that the times of two submissions do not overlap.
    pub(crate) fn submit(&mut self, builder: &mut GraphBuilder) -> Result<Ticket> {
        if !self.profile {
            return builder.submit_once();
        }
        let timed = builder.submit_once_timed()?;
        let timing = match self.left() {
            None => timed.wait()?,
            Some(left) => timed.wait_within(left)?.ok_or_else(|| self.timed_out())?,
        };
        self.timing = Some(sum(self.timing, timing));
        Ok(timed.ticket().clone())
    }

    /// Waits for a submission, as long as the sequence may take.
    pub(crate) fn wait(&self, ticket: &Ticket) -> Result<()> {
        match self.left() {
            None => ticket.wait(),
            Some(left) if ticket.wait_within(left)? => Ok(()),
            Some(_) => Err(self.timed_out()),
        }
    }

    /// The time that is left, if there is a limit.
    fn left(&self) -> Option<Duration> {
        let now = self.runtime.driver().clock().now();
        self.deadline.as_ref().map(|deadline| deadline.at.saturating_sub(now))
    }

    fn timed_out(&self) -> Error {
        let limit = self.deadline.as_ref().map_or(Duration::ZERO, |deadline| deadline.limit);
        ProgramError::TimedOut { program: self.program.clone(), limit }.into()
    }
}

/// Two submissions, one after the other.
fn sum(before: Option<Timing>, next: Timing) -> Timing {
    let Some(before) = before else { return next };
    Timing {
        device: before.device.saturating_add(next.device),
        enqueue: before.enqueue.saturating_add(next.enqueue),
        wait: before.wait.saturating_add(next.wait),
        wall: before.wall.saturating_add(next.wall),
    }
}
