//! Where the submissions of a sequence go, with its deadline and its clock.

use std::time::Duration;

use super::error::ProgramError;
use crate::error::Result;
use crate::graph::GraphBuilder;
use crate::runtime::{DeviceRuntime, Ticket};
use crate::telemetry::Timing;

/// Where the submissions of a sequence go.
pub(super) struct Queue {
    pub(super) runtime: DeviceRuntime,
    /// The first program of the sequence, for messages.
    program: String,
    deadline: Option<Deadline>,
    profile: bool,
    pub(super) timing: Option<Timing>,
}

/// A moment on the device's clock.
struct Deadline {
    at: Duration,
    limit: Duration,
}

impl Queue {
    pub(super) fn new(
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
    pub(super) fn submit(&mut self, builder: &mut GraphBuilder) -> Result<Ticket> {
        if !self.profile {
            return builder.submit_once();
        }
        let timed = builder.submit_once_timed()?;
        self.wait(timed.ticket())?;
        self.timing = Some(sum(self.timing, timed.wait()?));
        Ok(timed.ticket().clone())
    }

    /// Waits for a submission, as long as the sequence may take.
    pub(super) fn wait(&self, ticket: &Ticket) -> Result<()> {
        let Some(deadline) = &self.deadline else { return ticket.wait() };
        let left = deadline.at.saturating_sub(self.runtime.driver().clock().now());
        if ticket.wait_within(left)? {
            return Ok(());
        }
        Err(ProgramError::TimedOut { program: self.program.clone(), limit: deadline.limit }.into())
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
