//! A layer around the driver that notices a lost device in the errors of calls, and allocations in stream order.

use std::cell::Cell;
use std::sync::{Arc, OnceLock, Weak};

use kiln_driver::call::{Answer, Call};
use kiln_driver::layer::Layer;
use kiln_driver::{Command, Driver, Error, MemoryRequest};
use kiln_order::DependencyTracker;

use super::cause::Cause;
use super::phase::Phase;
use super::state_cell::StateCell;

thread_local! {
    /// The generation in which this thread began its current call of a driver.
    static CALLED_IN: Cell<u64> = const { Cell::new(0) };
}

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

    #[inline]
    fn begin_call(&self) {
        CALLED_IN.set(self.state.generation().0);
    }

    /// A call has failed. If the device was rebuilt since the call began, the error is that of the context before: a thread that was not scheduled
    /// meanwhile comes with it late.
    #[cold]
    fn lost(&self, error: &Error) {
        if CALLED_IN.get() < self.state.generation().0 {
            return;
        }
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
        self.begin_call();
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

#[cfg(test)]
mod tests {
    use kiln_driver::{Code, Fault};

    use super::*;

    #[test]
    fn an_error_of_the_context_before_is_no_news_of_the_rebuilt_one() {
        let state = Arc::new(StateCell::new(Arc::default()));
        state.set_controlled(true);
        state.change(Phase::Ready).unwrap();
        let detector = FaultDetector::new(state.clone());
        let error = Error::lost("wait", Fault { code: Code::LAUNCH_TIMEOUT, detail: "no progress".into() });
        detector.begin_call();
        state.lose(|| Cause::new(error.clone()), None);
        state.change(Phase::Rebuilding).unwrap();
        state.change(Phase::Ready).unwrap();
        detector.lost(&error);
        assert_eq!(state.phase(), Phase::Ready, "the call began before");
        detector.begin_call();
        detector.lost(&error);
        assert_eq!(state.phase(), Phase::Lost, "the call began on the rebuilt device");
    }
}
