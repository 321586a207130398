//! The context of a device, which every call enters.
//!
//! A CUDA context is current per thread, and any other library may change that. A thread-local memory of what kiln
//! set last would be wrong then, so each call asks the driver which context is current (21 ns measured on an H200)
//! and sets its own only if it is another one (38 ns). A call leaves the context current. Launches, signals and waits
//! name a stream, which belongs to a context: the driver takes them or refuses them, and only a refusal makes them ask,
//! or a thread that has not been here before.
//!
//! Entering also checks whether this process was forked after the device was opened, and whether the device is lost; both are errors without a
//! call of the driver. Every object of the driver holds the context, so it is released last.

use std::cell::Cell;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use cudarc::driver::sys;
use kiln_driver::{Code, Error, Result};

use crate::convert;
use crate::cuda_absence::StartFault;
use crate::deferred_frees::DeferredFrees;
use crate::event_pool::EventPool;
use crate::fork_count::Birth;
use crate::libcuda::{Libcuda, start_check};
use crate::libcuda_symbols::{Api, Status};
use crate::native_handle::Native;
use crate::sticky_error::StickyError;
use crate::stream_progress::SubmissionLog;

/// The primary context of one device, retained.
// In this order and alignment: every call reads the first three fields, in one cache line.
#[repr(C, align(64))]
pub(crate) struct Context {
    library: &'static Libcuda,
    /// The library's, where every call finds it.
    birth: Birth,
    faults: StickyError,
    device: sys::CUdevice,
    raw: Native<sys::CUctx_st>,
    events: EventPool,
    deferred_frees: DeferredFrees,
}

/// The contexts that are open, so that a device opened twice shares one: whether it is idle or lost concerns both.
static SHARED: Mutex<Vec<(sys::CUdevice, Weak<Context>)>> = Mutex::new(Vec::new());

thread_local! {
    /// The context this thread entered last. It may not be current any more, or not exist; it is compared and never dereferenced.
    static LAST: Cell<*const Context> = const { Cell::new(std::ptr::null()) };
}

impl Context {
    /// The primary context of a device, created if there is none.
    pub(crate) fn open(
        library: &'static Libcuda,
        device: sys::CUdevice,
    ) -> std::result::Result<Arc<Self>, StartFault> {
        // The lock is not held while a context is created. If two threads create one, the second releases its own.
        let made = match find(device) {
            Some(context) => context,
            None => Self::retain(library, device)?,
        };
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        let first =
            shared.iter().filter(|(known, _)| *known == device).find_map(|(_, context)| context.upgrade());
        let context = first.unwrap_or_else(|| {
            shared.retain(|(_, context)| context.strong_count() > 0);
            shared.push((device, Arc::downgrade(&made)));
            made.clone()
        });
        drop(shared);
        if let Some(code) = context.faults.first().and_then(Error::code) {
            return Err(StartFault { call: "cuDevicePrimaryCtxRetain", code });
        }
        // A context that was open already is current on the threads that used it, and this may be another thread.
        start_check("cuCtxSetCurrent", context.make_current())?;
        Ok(context)
    }

    fn retain(
        library: &'static Libcuda,
        device: sys::CUdevice,
    ) -> std::result::Result<Arc<Self>, StartFault> {
        let api = library.api();
        let mut raw = Native::NULL;
        // SAFETY: the out-parameter is a live local and the device came from `cuDeviceGet`.
        let status = unsafe { (api.context_retain)(raw.slot(), device) };
        start_check("cuDevicePrimaryCtxRetain", status)?;
        let context = Self {
            library,
            birth: library.birth(),
            device,
            raw,
            faults: StickyError::default(),
            events: EventPool::default(),
            deferred_frees: DeferredFrees::default(),
        };
        // SAFETY: the context was retained just now.
        let status = unsafe { (api.context_set)(raw.raw()) };
        start_check("cuCtxSetCurrent", status)?;
        Ok(Arc::new(context))
    }

    /// What the device was lost by, if that was seen.
    pub(crate) fn fault(&self) -> Option<&Error> {
        self.faults.first()
    }

    /// Makes the context current and gives access to the driver.
    ///
    /// # Errors
    /// Unsupported on the other side of a fork; lost once the device is.
    // Not inlined: launches call it once for each thread, and their path must stay short.
    #[inline(never)]
    pub(crate) fn enter(&self, call: &'static str) -> Result<&Api> {
        self.check_process(call)?;
        if let Some(error) = self.faults.first() {
            return Err(error.clone().seen_by(call));
        }
        self.set_current(call)?;
        Ok(self.library.api())
    }

    /// Makes the context current, for a call that was let [`pass`](Self::pass) already.
    #[inline]
    pub(crate) fn set_current(&self, call: &'static str) -> Result<()> {
        let status = self.make_current();
        self.check(call, status)?;
        LAST.set(std::ptr::from_ref(self));
        Ok(())
    }

    /// The driver for a call that names a stream; the context need not be current, see
    /// [`was_elsewhere`](Self::was_elsewhere).
    ///
    /// # Errors
    /// As for [`enter`](Self::enter).
    #[inline]
    pub(crate) fn pass(&self, call: &'static str) -> Result<&Api> {
        if LAST.get() != std::ptr::from_ref(self) {
            return self.enter(call);
        }
        self.check_process(call)?;
        match self.faults.first() {
            None => Ok(self.library.api()),
            Some(error) => Err(error.clone().seen_by(call)),
        }
    }

    /// Whether the driver may have refused a call because another context was current. Ours is now, so that the call can be made
    /// again.
    #[cold]
    pub(crate) fn was_elsewhere(&self, status: Status) -> bool {
        if !matches!(Code(status), Code::INVALID_CONTEXT | Code::INVALID_HANDLE | Code::CONTEXT_IS_DESTROYED)
        {
            return false;
        }
        let mut current = Native::NULL;
        // SAFETY: the out-parameter is a live local.
        let asked = unsafe { (self.library.api().context_current)(current.slot()) };
        (asked != 0 || current != self.raw) && self.make_current() == 0
    }

    /// Unsupported on the other side of a fork.
    #[inline]
    pub(crate) fn check_process(&self, call: &'static str) -> Result<()> {
        if self.birth.is_here() { Ok(()) } else { Err(convert::forked(call)) }
    }

    /// An error unless the call succeeded.
    #[inline]
    pub(crate) fn check(&self, call: &'static str, status: Status) -> Result<()> {
        if status == 0 { Ok(()) } else { Err(self.failure(call, status, None)) }
    }

    /// The error for a status of the driver. A sticky code means that the device is lost; `asked` is the stream the call was about.
    #[cold]
    pub(crate) fn failure(&self, call: &'static str, status: Status, asked: Option<&SubmissionLog>) -> Error {
        match Code(status) {
            code if code.is_sticky() => self.faults.lose(call, code, asked),
            code => convert::refusal(call, code),
        }
    }

    /// The error for an allocation the driver did not make.
    #[cold]
    pub(crate) fn memory_failure(&self, call: &'static str, status: Status, requested: u64) -> Error {
        match Code(status) {
            Code::OUT_OF_MEMORY => Error::out_of_memory(call, requested, self.free_bytes()),
            _ => self.failure(call, status, None),
        }
    }

    /// What is free right now, if the driver can tell.
    pub(crate) fn free_bytes(&self) -> Option<u64> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: both out-parameters are live locals; without a current context the driver refuses.
        let status = unsafe { (self.library.api().memory_info)(&mut free, &mut total) };
        (status == 0).then_some(free as u64)
    }

    /// Frees an object of the driver. A failure is ignored: the process may be ending, or the device may be lost, and then the context is freed with
    /// everything in it. In a forked child nothing is called.
    pub(crate) fn release(&self, give_back: impl FnOnce(&Api) -> Status) {
        if self.is_gone() || self.make_current() != 0 {
            return;
        }
        let code = Code(give_back(self.library.api()));
        if code.is_sticky() {
            self.faults.lose("destroy", code, None);
        }
    }

    /// Whether it cannot be used any more: the device is lost, or this is a forked child.
    pub(crate) fn is_gone(&self) -> bool {
        !self.birth.is_here() || self.faults.first().is_some()
    }

    /// Events that are not in use.
    pub(crate) fn events(&self) -> &EventPool {
        &self.events
    }

    /// Frees that wait for the device to be idle.
    pub(crate) fn deferred_frees(&self) -> &DeferredFrees {
        &self.deferred_frees
    }

    /// The memory of faults.
    pub(crate) fn faults(&self) -> &StickyError {
        &self.faults
    }

    /// The number libcuda knows the device by.
    pub(crate) fn device(&self) -> sys::CUdevice {
        self.device
    }

    /// The context as libcuda takes it.
    pub(crate) fn raw(&self) -> sys::CUcontext {
        self.raw.raw()
    }

    #[inline]
    fn make_current(&self) -> Status {
        let api = self.library.api();
        let mut current = Native::NULL;
        // SAFETY: the out-parameter is a live local.
        let status = unsafe { (api.context_current)(current.slot()) };
        if status == 0 && current == self.raw {
            return 0;
        }
        // SAFETY: the context is retained for as long as `self` lives.
        unsafe { (api.context_set)(self.raw.raw()) }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if !self.is_gone() {
            self.free_all();
            for event in self.events.drain() {
                // SAFETY: the pool was the only owner.
                self.release(|api| unsafe { (api.event_destroy)(event.raw()) });
            }
        }
        if self.birth.is_here() {
            // SAFETY: releases what `retain` took, once. The result does not matter: at the end of the process the driver may have
            // been unloaded.
            unsafe { (self.library.api().context_release)(self.device) };
        }
    }
}

/// The context that is open for a device.
fn find(device: sys::CUdevice) -> Option<Arc<Context>> {
    let shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    shared.iter().filter(|(known, _)| *known == device).find_map(|(_, context)| context.upgrade())
}
