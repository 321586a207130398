//! The streams that the current thread has entered and not yet left, so that it never waits for itself.
//!
//! A submission enters its stream and leaves it before the call returns, so a thread that finds a stream entered waits for another thread. A
//! prepared use is the exception: its caller holds it while queueing foreign work, and what the same thread asks of that stream
//! meanwhile would wait for itself. So a thread notes what it holds, and a thread that is about to wait looks here first; one that need not
//! wait looks at nothing.
//!
//! What cannot be refused, which is giving memory back, is put off until the thread holds nothing of that device any more.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::{Arc, Weak};

use kiln_driver::StreamId;

use crate::dependency_tracker::DependencyTracker;
use crate::stamp::Stamp;
use crate::stream_state::{StreamEntry, StreamState};
use crate::submit_error::SubmitError;
use crate::sync_shim::{BiasedGuard, thread_local};
use crate::vector_clock::HostClock;

thread_local! {
    static HELD: RefCell<Vec<Held>> = const { RefCell::new(Vec::new()) };
}

/// A submission that this thread has begun and not ended.
struct Held {
    tracker: Weak<DependencyTracker>,
    stream: StreamId,
    stamp: Stamp,
    /// What is to be done after it.
    after: Vec<Box<dyn FnOnce()>>,
}

impl Held {
    fn is_of(&self, order: &HostClock) -> bool {
        self.tracker.upgrade().is_some_and(|tracker| std::ptr::eq(tracker.host(), order))
    }
}

/// Says that this thread is inside of a stream, until it is dropped. It stays with its thread.
pub struct Hold {
    tracker: Weak<DependencyTracker>,
    stamp: Stamp,
    /// What a thread has noted is found by that thread alone.
    _of_this_thread: PhantomData<*const ()>,
}

impl Hold {
    /// This thread has begun a submission and returns to its caller inside of its stream.
    pub fn new(tracker: &Arc<DependencyTracker>, stream: StreamId, stamp: Stamp) -> Self {
        let tracker = Arc::downgrade(tracker);
        let held = Held { tracker: tracker.clone(), stream, stamp, after: Vec::new() };
        // A thread that is ending waits for nothing any more.
        let _ = HELD.try_with(|all| all.borrow_mut().push(held));
        Self { tracker, stamp, _of_this_thread: PhantomData }
    }
}

impl Drop for Hold {
    /// Must come after the stream is left: what was put off may enter it.
    fn drop(&mut self) {
        let after = HELD.try_with(|all| {
            let mut all = all.borrow_mut();
            let is_same = |held: &Held| held.tracker.ptr_eq(&self.tracker) && held.stamp == self.stamp;
            let after = all.iter().position(is_same).map(|at| all.swap_remove(at).after).unwrap_or_default();
            match all.iter_mut().find(|held| held.tracker.ptr_eq(&self.tracker)) {
                Some(other) => {
                    other.after.extend(after);
                    Vec::new()
                }
                None => after,
            }
        });
        after.unwrap_or_default().into_iter().for_each(|work| work());
    }
}

impl DependencyTracker {
    /// Enters a stream as soon as no other thread is inside. One that this thread is inside of is refused, which only those look at who
    /// would have to wait.
    #[inline(always)]
    pub(crate) fn enter_stream<'a>(
        &self,
        state: &'a StreamState,
    ) -> Result<BiasedGuard<'a, StreamEntry>, SubmitError> {
        match state.try_enter() {
            Some(guard) => Ok(guard),
            None => self.enter_contended(state),
        }
    }

    #[cold]
    #[inline(never)]
    fn enter_contended<'a>(
        &self,
        state: &'a StreamState,
    ) -> Result<BiasedGuard<'a, StreamEntry>, SubmitError> {
        match held_here(self.host(), |held| held.stream == state.key) {
            Some(stream) => Err(SubmitError::Held { stream }),
            None => Ok(state.enter()),
        }
    }
}

/// A stream that this thread is inside of, by a submission that `which` tells; none if there is none. An order is known by its clock.
#[cold]
pub fn held_here(order: &HostClock, which: impl Fn(Stamp) -> bool) -> Option<StreamId> {
    let look = |all: &RefCell<Vec<Held>>| {
        let all = all.borrow();
        all.iter().find(|held| which(held.stamp) && held.is_of(order)).map(|held| held.stream)
    };
    HELD.try_with(look).ok().flatten()
}

/// Whether this thread is inside of any stream, of whichever order.
#[inline]
pub fn holds_any() -> bool {
    HELD.try_with(|all| !all.borrow().is_empty()).unwrap_or(false)
}

/// Does something as soon as this thread is inside of no stream of an order, which may be now.
pub fn put_off(order: &HostClock, work: Box<dyn FnOnce()>) {
    let mut work = Some(work);
    let _ = HELD.try_with(|all| {
        if let Some(held) = all.borrow_mut().iter_mut().find(|held| held.is_of(order)) {
            held.after.extend(work.take());
        }
    });
    if let Some(work) = work {
        work();
    }
}
