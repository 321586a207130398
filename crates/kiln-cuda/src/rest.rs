//! What is given back only while the device rests.
//!
//! Freeing device memory, unpinning host memory and unloading code wait, inside the driver, for everything that runs on
//! the device, whoever started it. No call of the waist may do that. So these three are put aside while one of our
//! streams has work, and done at the next opportunity when none has: another such call, a wait that ended, an
//! allocation. Nothing is lost by waiting but the memory, and an allocation that finds none waits a little for it.
//!
//! Between the look and the call another thread may start work; then that one call waits for it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use cudarc::driver::sys;
use kiln_driver::{Clock, Code, Timeout};

use crate::api::{Api, Status};
use crate::context::Context;
use crate::native::Native;
use crate::stream::Stream;
use crate::wait::wait_until;

/// How long an allocation that finds no memory waits for what was put aside.
const PATIENCE: Duration = Duration::from_millis(100);

/// One thing to give back.
type GiveBack = Box<dyn FnOnce(&Api) -> Status + Send>;

/// What waits for the device to rest, and how to tell that it does.
#[derive(Default)]
pub(crate) struct Rest {
    waiting: AtomicUsize,
    aside: Mutex<Vec<GiveBack>>,
    streams: Mutex<Vec<Weak<Stream>>>,
    /// Recorded at the end of streams that were destroyed with work in them.
    ends: Mutex<Vec<Native<sys::CUevent_st>>>,
}

impl Context {
    /// Gives something back as soon as the driver does not wait for running work to do it, which is now if the device
    /// rests.
    pub(crate) fn release_at_rest(&self, give_back: impl FnOnce(&Api) -> Status + Send + 'static) {
        if self.is_gone() {
            return;
        }
        lock(&self.rest().aside).push(Box::new(give_back));
        self.rest().waiting.fetch_add(1, Ordering::Release);
        self.settle();
    }

    /// Gives back what was put aside, if the device rests.
    pub(crate) fn settle(&self) {
        if self.rest().waiting.load(Ordering::Acquire) > 0 && !self.is_gone() && self.is_resting() {
            self.give_back_all();
        }
    }

    /// Tries an allocation; if there is no memory and some was put aside, once more when that is back.
    pub(crate) fn allocate_at_rest(&self, clock: &dyn Clock, mut allocate: impl FnMut() -> Status) -> Status {
        self.settle();
        let status = allocate();
        if Code(status) != Code::OUT_OF_MEMORY || self.rest().waiting.load(Ordering::Acquire) == 0 {
            return status;
        }
        let _ = wait_until(clock, Timeout::After(PATIENCE), || {
            self.settle();
            Ok(self.rest().waiting.load(Ordering::Acquire) == 0)
        });
        allocate()
    }

    /// Gives back everything that was put aside, whatever the device does.
    pub(crate) fn give_back_all(&self) {
        let aside = std::mem::take(&mut *lock(&self.rest().aside));
        let count = aside.len();
        aside.into_iter().for_each(|give_back| self.release(give_back));
        self.rest().waiting.fetch_sub(count, Ordering::Release);
    }

    /// Looks at a stream from now on to tell whether the device rests.
    pub(crate) fn watch_rest(&self, stream: &Arc<Stream>) {
        let mut streams = lock(&self.rest().streams);
        streams.retain(|watched| watched.strong_count() > 0);
        streams.push(Arc::downgrade(stream));
    }

    /// Looks at the end of a stream that is gone while its work goes on.
    pub(crate) fn watch_end(&self, event: Native<sys::CUevent_st>) {
        lock(&self.rest().ends).push(event);
    }

    /// Whether none of our streams has work.
    fn is_resting(&self) -> bool {
        let Ok(api) = self.enter("destroy") else { return false };
        let streams: Vec<Arc<Stream>> = lock(&self.rest().streams).iter().filter_map(Weak::upgrade).collect();
        let idle = |stream: &Arc<Stream>| !stream.is_owned() || stream.is_idle("destroy", api);
        streams.iter().all(idle) && self.ends_are_done(api)
    }

    fn ends_are_done(&self, api: &Api) -> bool {
        let ends = std::mem::take(&mut *lock(&self.rest().ends));
        // SAFETY: the events are ours alone and were recorded before they were put here.
        let is_done = |event: &Native<_>| unsafe { (api.event_query)(event.raw()) } == 0;
        let (done, working): (Vec<_>, Vec<_>) = ends.into_iter().partition(is_done);
        done.into_iter().for_each(|event| self.events().put(api, event));
        let rest = working.is_empty();
        lock(&self.rest().ends).extend(working);
        rest
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
