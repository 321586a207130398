//! Submits the parts of a sequence to its stream, with its deadline and timing.
//!
//! A run is the same steps whether its caller blocks or polls. They differ only here, in how the end of a submission is waited for.

use std::time::Duration;

use kiln_runtime::{DeviceRuntime, Error, GraphBuilder, Result, Ticket, Timed, Timing};

use crate::error::ProgramError;

/// Where the submissions of a sequence go.
pub(crate) struct Queue {
    pub(crate) runtime: DeviceRuntime,
    /// The first program of the sequence, for messages.
    program: String,
    deadline: Option<Deadline>,
    profile: bool,
    waiting: Waiting,
    pub(crate) timing: Option<Timing>,
}

/// How the end of a submission is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Waiting {
    /// The thread blocks, so that the future of a run is ready at its first poll.
    Blocking,
    /// The task is woken.
    Polled,
}

/// Something that was submitted, and perhaps its time.
pub(crate) struct Submitted {
    pub(crate) ticket: Ticket,
    timed: Option<Timed>,
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
        waiting: Waiting,
    ) -> Self {
        let now = runtime.driver().clock().now();
        let deadline = limit.map(|limit| Deadline { at: now.saturating_add(limit), limit });
        Self { runtime, program, deadline, profile, waiting, timing: None }
    }

    /// Submits everything a builder recorded.
    pub(crate) fn submit(&self, builder: &mut GraphBuilder) -> Result<Submitted> {
        if !self.profile {
            return Ok(Submitted { ticket: builder.submit_once()?, timed: None });
        }
        let timed = builder.submit_once_timed()?;
        Ok(Submitted { ticket: timed.ticket().clone(), timed: Some(timed) })
    }

    /// Adds the time of a submission, where it is taken: it is then waited for, so that the times of two submissions do not overlap.
    pub(crate) async fn take_time(&mut self, submitted: Submitted) -> Result<Ticket> {
        let Submitted { ticket, timed } = submitted;
        if let Some(timed) = timed {
            if self.waiting == Waiting::Polled {
                self.wait(&ticket).await?;
            }
            let timing = match self.left() {
                None => timed.wait()?,
                Some(left) => timed.wait_within(left)?.ok_or_else(|| self.timed_out())?,
            };
            self.timing = Some(sum(self.timing, timing));
        }
        Ok(ticket)
    }

    /// Waits for a submission, as long as the sequence may take.
    pub(crate) async fn wait(&self, ticket: &Ticket) -> Result<()> {
        match self.left() {
            _ if self.waiting == Waiting::Polled => ticket.clone().await,
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
