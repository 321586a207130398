//! A submission that can be waited for.

use std::sync::Arc;
use std::time::Duration;

use kiln_driver::Timeout;

use super::block::Generation;
use super::inner::Inner;
use crate::error::{Error, Result};
use crate::misuse::Misuse;
use crate::order::Stamp;

/// A submission. It can be polled, waited for, or ignored; a fault is the answer to everybody who asks.
///
/// What a host waited for needs no event any more: later work of any stream is ordered after it for free.
#[derive(Clone)]
pub struct Ticket {
    runtime: Arc<Inner>,
    stamp: Stamp,
    generation: Generation,
}

impl Ticket {
    pub(crate) fn new(runtime: Arc<Inner>, stamp: Stamp) -> Self {
        let generation = runtime.state().generation();
        Self { runtime, stamp, generation }
    }

    pub(crate) fn runtime(&self) -> &Arc<Inner> {
        &self.runtime
    }

    pub(crate) fn check_runtime(&self, runtime: &Arc<Inner>) -> Result<()> {
        if Arc::ptr_eq(&self.runtime, runtime) { Ok(()) } else { Err(Error::new(Misuse::ForeignTicket)) }
    }

    /// Its stream and number.
    pub fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// Whether it is done.
    ///
    /// # Errors
    /// The fault, if the device is lost.
    pub fn is_done(&self) -> Result<bool> {
        self.wait_for(Timeout::Poll)
    }

    /// Waits for it.
    ///
    /// # Errors
    /// The fault, if the device is lost.
    pub fn wait(&self) -> Result<()> {
        self.wait_for(Timeout::Never).map(|_| ())
    }

    /// Waits for it, but no longer than this; false if time ran out.
    ///
    /// # Errors
    /// The fault, if the device is lost.
    pub fn wait_within(&self, limit: Duration) -> Result<bool> {
        self.wait_for(Timeout::After(limit))
    }

    /// Waits for many, but no longer than this in all; false if time ran out.
    ///
    /// # Errors
    /// The fault, if a device is lost.
    pub fn wait_all(tickets: &[Self], limit: Option<Duration>) -> Result<bool> {
        let Some(first) = tickets.first() else { return Ok(true) };
        let clock = first.runtime.driver().clock();
        let end = limit.map(|limit| clock.now() + limit);
        for ticket in tickets {
            let timeout = end.map_or(Timeout::Never, |end| Timeout::After(end.saturating_sub(clock.now())));
            if !ticket.wait_for(timeout)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(crate) fn wait_for(&self, timeout: Timeout) -> Result<bool> {
        if self.generation != self.runtime.state().generation() {
            return self.fate();
        }
        Ok(self.runtime.tracker().wait(self.stamp, timeout)?.is_done())
    }
}

impl Ticket {
    /// What became of work of a generation that has ended: it was done before, or it failed with the rest.
    #[cold]
    fn fate(&self) -> Result<bool> {
        let state = self.runtime.state();
        match state.loss_where(|loss| loss.generation == self.generation && loss.caught(self.stamp)) {
            Some(loss) => Err(loss.cause.error().clone().into()),
            None => Ok(true),
        }
    }
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ticket {}", self.stamp)
    }
}
