//! A pool of events without timing.
//!
//! A host wait for a stream uses an internal event, and callers create and destroy events often. Recording an event again replaces its old record:
//! earlier waits have used that already.

use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys;
use kiln_driver::{Code, Result};

use crate::context::Context;
use crate::convert;
use crate::libcuda_symbols::{Api, Status};
use crate::native_handle::Native;

/// The most events that are kept.
const KEPT_EVENTS: usize = 256;

/// Plain events that are not in use.
#[derive(Default)]
pub(crate) struct EventPool {
    free: Mutex<Vec<Native<sys::CUevent_st>>>,
}

/// An event of ours.
pub(crate) struct OwnedEvent {
    raw: Native<sys::CUevent_st>,
    timed: bool,
    context: Arc<Context>,
}

impl EventPool {
    /// Removes all events, to destroy them.
    pub(crate) fn drain(&mut self) -> Vec<Native<sys::CUevent_st>> {
        std::mem::take(self.free.get_mut().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes an event that no wait uses any more.
    pub(crate) fn put(&self, api: &Api, event: Native<sys::CUevent_st>) {
        if !self.keep(event) {
            // SAFETY: the caller owned it alone.
            unsafe { (api.event_destroy)(event.raw()) };
        }
    }

    fn take(&self) -> Option<Native<sys::CUevent_st>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Keeps the event, or returns it if the pool is full.
    fn keep(&self, event: Native<sys::CUevent_st>) -> bool {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let room = free.len() < KEPT_EVENTS;
        if room {
            free.push(event);
        }
        room
    }
}

impl OwnedEvent {
    /// A plain event, from the pool if there is one. It may have an old record, so it must be recorded before it is queried.
    pub(crate) fn take(call: &'static str, api: &Api, context: &Arc<Context>) -> Result<Self> {
        match context.events().take() {
            Some(raw) => Ok(Self { raw, timed: false, context: context.clone() }),
            None => Self::create(call, api, context, false),
        }
    }

    /// An event that takes the time.
    pub(crate) fn timed(call: &'static str, api: &Api, context: &Arc<Context>) -> Result<Self> {
        Self::create(call, api, context, true)
    }

    /// The event as libcuda takes it.
    pub(crate) fn raw(&self) -> sys::CUevent {
        self.raw.raw()
    }

    /// Whether what it was last recorded after is done; an error is the driver's status.
    pub(crate) fn query(&self, api: &Api) -> std::result::Result<bool, Status> {
        // SAFETY: the event lives as long as `self`.
        match Code(unsafe { (api.event_query)(self.raw()) }) {
            Code::SUCCESS => Ok(true),
            Code::NOT_READY => Ok(false),
            code => Err(code.0),
        }
    }

    /// Releases the event; the caller destroys it.
    pub(crate) fn into_raw(self) -> Native<sys::CUevent_st> {
        let mut event = ManuallyDrop::new(self);
        let raw = event.raw;
        // SAFETY: the value is never used again, so its context is given back once.
        unsafe { std::ptr::drop_in_place(&raw mut event.context) };
        raw
    }

    fn create(call: &'static str, api: &Api, context: &Arc<Context>, timed: bool) -> Result<Self> {
        let mut raw = Native::NULL;
        let flags = if timed { convert::TIMED } else { convert::UNTIMED };
        // SAFETY: the out-parameter is a live local; the caller entered the context.
        let status = unsafe { (api.event_create)(raw.slot(), flags) };
        context.check(call, status)?;
        Ok(Self { raw, timed, context: context.clone() })
    }
}

impl Drop for OwnedEvent {
    fn drop(&mut self) {
        // In a forked child the lock may be held by a thread that does not exist.
        if self.context.is_gone() {
            return;
        }
        if self.timed || !self.context.events().keep(self.raw) {
            // SAFETY: this is the only owner; work that still waits for the event keeps what it needs of it.
            self.context.release(|api| unsafe { (api.event_destroy)(self.raw.raw()) });
        }
    }
}
