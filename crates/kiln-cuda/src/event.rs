//! Events.
//!
//! An event stores which submission signalled it last: one that was never signalled is done without a query, and one that is found done advances
//! the progress of its stream. The mark and the driver's record must agree, so both are written, and the event is queried, under the lock
//! of the event; no other event or stream needs it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cudarc::driver::sys;
use kiln_driver::{Code, Error, EventId, EventRequest, Result, Timeout, Waited};
use kiln_sync::{BiasedGuard, BiasedLock};

use crate::context::Context;
use crate::device::CudaDevice;
use crate::event_pool::OwnedEvent;
use crate::host_wait::wait_until;
use crate::libcuda_symbols::{Api, Status};
use crate::native_handle::Native;
use crate::stream::Stream;
use crate::stream_progress::SubmissionLog;

/// An event as a handle finds it.
pub(crate) struct Event {
    raw: Raw,
    /// Whether waiting for it can hold anything back; true from the first signal on.
    signalled: AtomicBool,
    mark: BiasedLock<Mark>,
    context: Arc<Context>,
}

enum Raw {
    Plain(OwnedEvent),
    Timed(OwnedEvent),
    Foreign(Native<sys::CUevent_st>),
}

/// What signalled an event last.
enum Mark {
    Never,
    At(Arc<SubmissionLog>, u64),
    /// Another library, in a way that is not known here.
    Foreign,
}

impl CudaDevice {
    pub(crate) fn create_event(&self, request: EventRequest) -> Result<EventId> {
        const CALL: &str = "create_event";
        let api = self.context.enter(CALL)?;
        let (raw, mark) = match request {
            EventRequest::Plain => (Raw::Plain(OwnedEvent::take(CALL, api, &self.context)?), Mark::Never),
            EventRequest::Timed => (Raw::Timed(OwnedEvent::timed(CALL, api, &self.context)?), Mark::Never),
            EventRequest::Foreign(handle) => (Raw::Foreign(Native::from_number(handle.raw())), Mark::Foreign),
            other => return Err(Error::unsupported(CALL, "this kind of event", format!("{other:?}"))),
        };
        let signalled = AtomicBool::new(matches!(mark, Mark::Foreign));
        self.events.insert(Event {
            raw,
            signalled,
            mark: BiasedLock::new(mark),
            context: self.context.clone(),
        })
    }

    /// Waits for an event as it was signalled last. Signalled again meanwhile, it is waited for anew.
    pub(crate) fn wait_event(&self, call: &'static str, event: EventId, timeout: Timeout) -> Result<Waited> {
        let api = self.context.enter(call)?;
        let event = self.events.pin(event).map_err(|error| error.seen_by(call))?;
        let waited = wait_until(&self.clock, timeout, || event.is_done(call, api))?;
        if waited.is_done() {
            self.context.run_deferred_frees();
        }
        Ok(waited)
    }

    pub(crate) fn elapsed(&self, from: EventId, to: EventId) -> Result<Duration> {
        const CALL: &str = "elapsed";
        const NEXT: &str = "create both as timed, signal them, and wait for the later one";
        let api = self.context.enter(CALL)?;
        let pin = |event| self.events.pin(event).map_err(|error: Error| error.seen_by(CALL));
        let (from_event, to_event) = (pin(from)?, pin(to)?);
        for (id, event) in [(from, &from_event), (to, &to_event)] {
            event.check_timed(api, id)?;
        }
        let mut milliseconds = 0f32;
        // SAFETY: both events are pinned, so neither is destroyed meanwhile; the out-parameter is a live local.
        let status = unsafe { (api.event_elapsed)(&mut milliseconds, from_event.raw(), to_event.raw()) };
        match Code(status) {
            Code::INVALID_HANDLE => Err(Error::invalid(CALL, format!("{from} or {to} takes no time"), NEXT)),
            Code::NOT_READY => Err(Error::invalid(CALL, format!("{from} or {to} is not done"), NEXT)),
            _ => {
                self.context.check(CALL, status)?;
                Duration::try_from_secs_f64(f64::from(milliseconds) / 1e3).map_err(|_| {
                    Error::invalid(CALL, format!("{from} was signalled after {to}"), "swap them")
                })
            }
        }
    }
}

impl Event {
    /// The event as libcuda takes it.
    pub(crate) fn raw(&self) -> sys::CUevent {
        match &self.raw {
            Raw::Plain(event) | Raw::Timed(event) => event.raw(),
            Raw::Foreign(event) => event.raw(),
        }
    }

    /// The event as a number.
    pub(crate) fn number(&self) -> u64 {
        self.raw() as usize as u64
    }

    /// Records the event as the next submission of a stream, whose turn the caller holds. The status is the driver's.
    pub(crate) fn record(&self, api: &Api, stream: &Stream, number: u64) -> Status {
        let mut mark = self.mark();
        // SAFETY: the caller pins both the event and the stream, so neither is destroyed meanwhile.
        let status = unsafe { (api.event_record)(self.raw(), stream.raw()) };
        if status != 0 || matches!(self.raw, Raw::Foreign(_)) {
            return status;
        }
        match &mut *mark {
            // An event mostly stays with its stream.
            Mark::At(submissions, at) if Arc::ptr_eq(submissions, stream.submissions()) => *at = number,
            other => *other = Mark::At(stream.submissions().clone(), number),
        }
        self.signalled.store(true, Ordering::Release);
        status
    }

    /// Whether waiting for it holds anything back.
    pub(crate) fn was_signalled(&self) -> bool {
        self.signalled.load(Ordering::Acquire)
    }

    /// Whether what signalled it last is done.
    pub(crate) fn is_done(&self, call: &'static str, api: &Api) -> Result<bool> {
        let mark = self.mark();
        if matches!(*mark, Mark::Never) {
            return Ok(true);
        }
        // SAFETY: the caller pins the event, so it is not destroyed meanwhile.
        let status = unsafe { (api.event_query)(self.raw()) };
        let submissions = match &*mark {
            Mark::At(submissions, number) => {
                if status == 0 {
                    submissions.complete(*number);
                }
                Some(submissions.clone())
            }
            Mark::Never | Mark::Foreign => None,
        };
        drop(mark);
        match Code(status) {
            Code::SUCCESS => Ok(true),
            Code::NOT_READY => Ok(false),
            _ => Err(self.context.failure(call, status, submissions.as_deref())),
        }
    }

    fn check_timed(&self, api: &Api, id: EventId) -> Result<()> {
        const CALL: &str = "elapsed";
        if matches!(self.raw, Raw::Plain(_)) {
            return Err(Error::invalid(CALL, format!("{id} takes no time"), "create it as timed"));
        }
        if !self.was_signalled() {
            return Err(Error::invalid(CALL, format!("{id} was never signalled"), "signal it on a stream"));
        }
        if !self.is_done(CALL, api)? {
            return Err(Error::invalid(CALL, format!("{id} is not done"), "wait for it"));
        }
        Ok(())
    }

    fn mark(&self) -> BiasedGuard<'_, Mark> {
        self.mark.lock()
    }
}
