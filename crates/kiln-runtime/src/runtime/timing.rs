//! Measures the time of work on the device, with an event before and one after it.
//!
//! Two events stand directly around the work, behind the waits for other streams, so device time is the work's own. Host time is kept
//! apart: what queueing cost, and what waiting cost.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kiln_driver::{Driver, EventId, EventRequest};

use super::inner::Inner;
use super::ticket::Ticket;
use crate::error::Result;
use crate::ids::Generation;

/// Events with timing, kept for the next time.
#[derive(Default)]
pub(crate) struct Timers(Mutex<Vec<EventPair>>);

/// Before and after.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventPair {
    pub(crate) start: EventId,
    pub(crate) end: EventId,
}

impl Timers {
    /// Two unused events.
    pub(crate) fn take(&self, driver: &dyn Driver) -> std::result::Result<EventPair, kiln_driver::Error> {
        let idle = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match idle {
            Some(pair) => Ok(pair),
            None => {
                let start = driver.create_event(EventRequest::Timed)?;
                let end = driver.create_event(EventRequest::Timed).inspect_err(|_| {
                    // The first failure is the one to tell of.
                    let _ = driver.destroy(start.into());
                })?;
                Ok(EventPair { start, end })
            }
        }
    }

    pub(crate) fn put_back(&self, pair: EventPair) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(pair);
    }

    /// Gives all events back; for the end of a runtime.
    pub(crate) fn destroy_all(&self, driver: &dyn Driver) {
        for pair in std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner)) {
            let _ = driver.destroy(pair.start.into());
            let _ = driver.destroy(pair.end.into());
        }
    }
}

/// A submission whose time is taken.
#[must_use = "the time is known once it is waited for"]
pub struct Timed {
    runtime: Arc<Inner>,
    ticket: Ticket,
    events: EventPair,
    /// The worker of that generation has the times.
    generation: Generation,
    /// When the call began, by the device's clock.
    began: Duration,
    enqueue: Duration,
    /// Why its time could not be taken.
    untimed: Option<kiln_driver::Error>,
}

/// How long a submission took.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// On the device: the work alone, without waits for other streams. On a device that was idle, the moment between two calls of the host
    /// is in it.
    pub device: Duration,
    /// On the host: the call that queued it.
    pub enqueue: Duration,
    /// On the host: waiting for its end.
    pub wait: Duration,
    /// On the host: from the call that queued it to its end.
    pub wall: Duration,
}

impl Timed {
    pub(crate) fn new(
        runtime: Arc<Inner>,
        ticket: Ticket,
        events: EventPair,
        began: Duration,
        untimed: Option<kiln_driver::Error>,
    ) -> Self {
        let enqueue = runtime.driver().clock().now().saturating_sub(began);
        let generation = runtime.state().generation();
        Self { runtime, ticket, events, generation, began, enqueue, untimed }
    }

    /// The submission, as any other.
    pub fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// Waits for it and says how long it took.
    ///
    /// # Errors
    /// The fault, if the device is lost; an event that the device refused. Times are lost with the worker that took them, also those of work
    /// that was done, which its [`ticket`](Self::ticket) still says.
    #[track_caller]
    pub fn wait(&self) -> Result<Timing> {
        let before = self.now();
        self.ticket.wait()?;
        self.taken(before)
    }

    /// As [`wait`](Self::wait), but no longer than this; none if time ran out.
    ///
    /// # Errors
    /// As for [`wait`](Self::wait).
    #[track_caller]
    pub fn wait_within(&self, limit: Duration) -> Result<Option<Timing>> {
        let before = self.now();
        if self.ticket.wait_within(limit)? { self.taken(before).map(Some) } else { Ok(None) }
    }

    /// The times of a submission that is done, and was waited for from a moment on.
    fn taken(&self, before: Duration) -> Result<Timing> {
        let after = self.now();
        if let Some(error) = &self.untimed {
            return Err(error.clone().into());
        }
        let elapsed = self.runtime.driver().elapsed(self.events.start, self.events.end);
        let device = elapsed.map_err(|error| {
            // The events were made again in another worker, where nothing has passed them.
            let lost = self.runtime.state().loss_where(|loss| loss.generation >= self.generation);
            lost.map_or(error, |loss| loss.cause.error().clone())
        })?;
        Ok(Timing {
            device,
            enqueue: self.enqueue,
            wait: after.saturating_sub(before),
            wall: after.saturating_sub(self.began),
        })
    }

    fn now(&self) -> Duration {
        self.runtime.driver().clock().now()
    }
}

impl Drop for Timed {
    fn drop(&mut self) {
        // Signalled again, they mean the next submission; no other code looks at what they meant before.
        self.runtime.timers().put_back(self.events);
    }
}

impl std::fmt::Debug for Timed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "timed {:?}", self.ticket)
    }
}
