//! Frees that are deferred until the device is idle.
//!
//! Freeing device memory, unpinning host memory and unloading code wait, inside the driver, for all work on the device, also that of other
//! libraries. No call of the driver interface may wait. So these three are deferred while one of our streams has work, and carried out by the next of these calls that
//! finds the device idle: another free, a wait that ended, an allocation. The memory stays allocated meanwhile; an allocation that finds none waits
//! a little for it.
//!
//! Between the check and the free another thread may queue work; then that one free waits for it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use cudarc::driver::sys;
use kiln_driver::{Clock, Code, Timeout};

use crate::context::Context;
use crate::host_wait::wait_until;
use crate::libcuda_symbols::{Api, Status};
use crate::native_handle::Native;
use crate::stream::Stream;

/// How long an allocation that finds no memory waits for deferred frees.
const ALLOCATION_WAIT: Duration = Duration::from_millis(100);

/// One deferred free.
type Free = Box<dyn FnOnce(&Api) -> Status + Send>;

/// Frees that wait for the device to be idle, and what tells whether it is.
#[derive(Default)]
pub(crate) struct DeferredFrees {
    count: AtomicUsize,
    deferred: Mutex<Vec<Free>>,
    streams: Mutex<Vec<Weak<Stream>>>,
    /// Events at the end of streams that were destroyed with work in them.
    ends: Mutex<Vec<Native<sys::CUevent_st>>>,
}

impl Context {
    /// Frees something once the driver does not wait for running work to do it, which is now if the device is idle.
    pub(crate) fn free_when_idle(&self, free: impl FnOnce(&Api) -> Status + Send + 'static) {
        if self.is_gone() {
            return;
        }
        lock(&self.deferred_frees().deferred).push(Box::new(free));
        self.deferred_frees().count.fetch_add(1, Ordering::Release);
        self.run_deferred_frees();
    }

    /// Carries out deferred frees, if the device is idle.
    pub(crate) fn run_deferred_frees(&self) {
        if self.deferred_frees().count.load(Ordering::Acquire) > 0 && !self.is_gone() && self.is_idle() {
            self.free_all();
        }
    }

    /// Tries an allocation; if there is no memory and frees are deferred, tries again after them.
    pub(crate) fn allocate_after_frees(
        &self,
        clock: &dyn Clock,
        mut allocate: impl FnMut() -> Status,
    ) -> Status {
        self.run_deferred_frees();
        let status = allocate();
        if Code(status) != Code::OUT_OF_MEMORY || self.deferred_frees().count.load(Ordering::Acquire) == 0 {
            return status;
        }
        let _ = wait_until(clock, Timeout::After(ALLOCATION_WAIT), || {
            self.run_deferred_frees();
            Ok(self.deferred_frees().count.load(Ordering::Acquire) == 0)
        });
        allocate()
    }

    /// Carries out all deferred frees, also while the device works.
    pub(crate) fn free_all(&self) {
        let deferred = std::mem::take(&mut *lock(&self.deferred_frees().deferred));
        let count = deferred.len();
        deferred.into_iter().for_each(|free| self.release(free));
        self.deferred_frees().count.fetch_sub(count, Ordering::Release);
    }

    /// Adds a stream to those that tell whether the device is idle.
    pub(crate) fn watch_stream(&self, stream: &Arc<Stream>) {
        let mut streams = lock(&self.deferred_frees().streams);
        streams.retain(|watched| watched.strong_count() > 0);
        streams.push(Arc::downgrade(stream));
    }

    /// Adds the event at the end of a stream that was destroyed with work in it.
    pub(crate) fn watch_stream_end(&self, event: Native<sys::CUevent_st>) {
        lock(&self.deferred_frees().ends).push(event);
    }

    /// Whether none of our streams has work.
    fn is_idle(&self) -> bool {
        let Ok(api) = self.enter("destroy") else { return false };
        let streams: Vec<Arc<Stream>> =
            lock(&self.deferred_frees().streams).iter().filter_map(Weak::upgrade).collect();
        let idle = |stream: &Arc<Stream>| !stream.is_owned() || stream.is_idle("destroy", api);
        streams.iter().all(idle) && self.ends_are_done(api)
    }

    fn ends_are_done(&self, api: &Api) -> bool {
        let ends = std::mem::take(&mut *lock(&self.deferred_frees().ends));
        // SAFETY: the events are ours alone and were recorded before they were put here.
        let has_ended = |event: &Native<_>| unsafe { (api.event_query)(event.raw()) } == 0;
        let (done, working): (Vec<_>, Vec<_>) = ends.into_iter().partition(has_ended);
        done.into_iter().for_each(|event| self.events().put(api, event));
        let is_done = working.is_empty();
        lock(&self.deferred_frees().ends).extend(working);
        is_done
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
