//! A layer around the driver that notices a lost device in the errors of calls, and allocations in stream order.

use std::sync::{Arc, OnceLock, Weak};

use kiln_driver::call::{Answer, Call};
use kiln_driver::layer::Layer;
use kiln_driver::{Command, Driver, Error, MemoryRequest};
use kiln_order::DependencyTracker;

use super::cause::Cause;
use super::phase::Phase;
use super::state_cell::StateCell;

/// A layer around the driver that looks at errors. Calls of the order, the memory, transfers and the user pass it; a call that
/// succeeds costs a compare.
pub(crate) struct FaultDetector {
    state: Arc<StateCell>,
    tracker: OnceLock<Weak<DependencyTracker>>,
}

impl FaultDetector {
    pub(crate) fn new(state: Arc<StateCell>) -> Self {
        Self { state, tracker: OnceLock::new() }
    }

    /// Tells it whose submissions they are.
    pub(crate) fn knows(&self, tracker: &Arc<DependencyTracker>) {
        // There is one tracker for each runtime, so this is the first call.
        let _ = self.tracker.set(Arc::downgrade(tracker));
    }

    #[cold]
    fn made_memory(&self) {
        if let Some(tracker) = self.tracker.get().and_then(Weak::upgrade) {
            tracker.note_made_memory();
        }
    }

    #[cold]
    fn lost(&self, error: &Error) {
        let tracker = self.tracker.get().and_then(Weak::upgrade);
        let cause = || match &tracker {
            Some(tracker) => Cause::found(error.clone(), tracker),
            None => Cause::new(error.clone()),
        };
        self.state.lose(cause, tracker.as_deref());
    }
}

impl Layer for FaultDetector {
    /// Nothing is queued behind the back of a shutdown, though what orders and ends work is still let through; and nothing at all on a
    /// device that is lost or being rebuilt.
    #[inline]
    fn before(&self, _: &dyn Driver, call: &Call<'_>) -> kiln_driver::Result<()> {
        match call {
            Call::Submit { command, .. } if !self.state.is_ready() => self.admit(command),
            _ => Ok(()),
        }
    }

    #[inline]
    fn after(&self, call: &Call<'_>, answer: Result<Answer<'_>, &Error>) {
        match answer {
            Err(error) if error.is_sticky() => self.lost(error),
            Ok(_) if matches!(call, Call::Allocate { request: MemoryRequest::Pool { .. } }) => {
                self.made_memory()
            }
            _ => {}
        }
    }

    /// A fault of a device that comes back is told as such.
    fn explain(&self, error: Error) -> Error {
        if error.is_sticky() && self.state.may_come_back() { error.with_successor(true) } else { error }
    }
}

impl FaultDetector {
    #[cold]
    fn admit(&self, command: &Command<'_>) -> kiln_driver::Result<()> {
        match self.state.phase() {
            Phase::ShuttingDown | Phase::Stopped
                if !matches!(command, Command::Signal(_) | Command::Wait(_)) =>
            {
                let next = "take a runtime that is not shut down";
                Err(Error::invalid("submit", "the device is shutting down", next))
            }
            // Another context may be there already while it is still being decided what the last one left behind.
            Phase::Lost | Phase::Rebuilding => match self.state.fault() {
                Some(cause) => Err(cause.error().clone().seen_by("submit")),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }
}
