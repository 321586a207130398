//! Where requests wait, and where the service's thread is told what to do next.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use kiln_driver::Driver;
use kiln_runtime::device_state::Phase;
use kiln_runtime::internal::FollowedState;
use kiln_runtime::{DeviceRuntime, Error, Status};

use super::queued_request::{Abandon, Job, shielded};
use crate::refused::RefusalReason;
use crate::service_load::{Load, Meter, Served};

/// A request whose work is done, to be answered on the service's thread.
type Completion = Box<dyn FnOnce() + Send>;

/// The queue of a service and what its thread has to look at.
pub(crate) struct RequestQueue {
    pub(crate) device_state: FollowedState,
    state: Mutex<QueueState>,
    changed: Condvar,
    meter: Meter,
    max_queued: usize,
    max_in_flight: usize,
}

struct QueueState {
    waiting: VecDeque<Box<dyn Job>>,
    completed: VecDeque<Completion>,
    in_flight: usize,
    /// Changes of the state of a device that were not followed yet, and which of the service's devices it is.
    news: VecDeque<(u64, Status)>,
    /// No new requests; those that wait are dealt with until then.
    closing: Option<Option<Instant>>,
    /// Why the service failed.
    failure: Option<Error>,
    submitted: Vec<Weak<dyn Abandon>>,
    /// The thread is gone.
    ended: bool,
    /// Something was sent back at the end.
    unfinished: bool,
}

/// What to do next.
pub(crate) enum Next {
    /// Answer a request.
    Answer(Completion),
    /// Start one.
    Start(Box<dyn Job>, InFlight),
    /// Follow a change of the state of one of the service's devices.
    Follow(u64, Status),
    /// The end.
    End,
}

impl RequestQueue {
    pub(crate) fn new(max_queued: usize, max_in_flight: usize) -> Self {
        let state = QueueState {
            waiting: VecDeque::new(),
            completed: VecDeque::new(),
            in_flight: 0,
            news: VecDeque::new(),
            closing: None,
            failure: None,
            submitted: Vec::new(),
            ended: false,
            unfinished: false,
        };
        Self {
            device_state: FollowedState::default(),
            state: Mutex::new(state),
            changed: Condvar::new(),
            meter: Meter::default(),
            max_queued,
            max_in_flight: max_in_flight.max(1),
        }
    }

    /// Puts a request in line, or says why not.
    pub(crate) fn put(&self, job: Box<dyn Job>) -> Result<(), (Box<dyn Job>, RefusalReason)> {
        let mut state = self.state();
        let why = match &state.failure {
            _ if state.closing.is_some() => Some(RefusalReason::Closed),
            Some(error) => Some(RefusalReason::Device(error.clone())),
            None if state.waiting.len() >= self.max_queued => {
                Some(RefusalReason::Full { limit: self.max_queued })
            }
            None => None,
        };
        if let Some(why) = why {
            return Err((job, why));
        }
        state.waiting.push_back(job);
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// Takes the end of a request's work.
    pub(crate) fn complete(&self, completed: Completion) {
        let mut state = self.state();
        if state.ended {
            // There is no device left to do it.
            drop(state);
            return completed();
        }
        state.completed.push_back(completed);
        drop(state);
        self.changed.notify_all();
    }

    /// Remembers a request whose work is on the device, in case the waiter is gone.
    pub(crate) fn remember(&self, job: Weak<dyn Abandon>) {
        let mut state = self.state();
        if state.submitted.len() > 2 * self.max_in_flight {
            state.submitted.retain(|job| job.strong_count() > 0);
        }
        state.submitted.push(job);
    }

    /// The state of one of the service's devices changed.
    pub(crate) fn tell(&self, device: u64, status: Status) {
        self.state().news.push_back((device, status));
        self.changed.notify_all();
    }

    /// No new requests from here on; those that wait are dealt with for so long.
    pub(crate) fn close(&self, limit: Duration) {
        let mut state = self.state();
        if state.closing.is_none() {
            state.closing = Some(Instant::now().checked_add(limit));
        }
        drop(state);
        self.changed.notify_all();
    }

    /// The service has failed: all present and future requests are told.
    pub(crate) fn fail(&self, error: &Error) {
        let waiting = {
            let mut state = self.state();
            state.failure = Some(error.clone());
            std::mem::take(&mut state.waiting)
        };
        waiting.into_iter().for_each(|job| shielded(|| job.refuse(RefusalReason::Device(error.clone()))));
    }

    /// The end: answers what is done and sends everything else back.
    pub(crate) fn end(&self) {
        let (waiting, completed, submitted) = {
            let mut state = self.state();
            state.ended = true;
            state.unfinished |= !state.waiting.is_empty();
            let waiting = std::mem::take(&mut state.waiting);
            (waiting, std::mem::take(&mut state.completed), std::mem::take(&mut state.submitted))
        };
        completed.into_iter().for_each(shielded);
        for job in submitted.iter().filter_map(Weak::upgrade) {
            shielded(|| {
                let abandoned = job.abandon();
                self.state().unfinished |= abandoned;
            });
        }
        waiting.into_iter().for_each(|job| shielded(|| job.refuse(RefusalReason::Closed)));
    }

    /// Whether nothing was sent back at the end.
    pub(crate) fn dealt_with_everything(&self) -> bool {
        !self.state().unfinished
    }

    /// What to do next; waits until there is something. Requests are started while `device` is there and ready.
    pub(crate) fn next(self: &Arc<Self>, device: Option<&DeviceRuntime>) -> Next {
        let mut state = self.state();
        loop {
            if let Some(completed) = state.completed.pop_front() {
                return Next::Answer(completed);
            }
            if let Some((device, status)) = state.news.pop_front() {
                return Next::Follow(device, status);
            }
            let deadline = state.closing.flatten();
            if state.closing.is_some() {
                let over = deadline.is_none_or(|end| Instant::now() >= end);
                // A device that comes back by itself is waited for as long as there is time.
                let stuck = device.is_none_or(|device| device.status().phase().is_over());
                let done = state.in_flight == 0 && (state.waiting.is_empty() || stuck);
                if over || done {
                    return Next::End;
                }
            }
            if let Some(device) = device.filter(|_| self.device_state.phase() != Phase::Rebuilding)
                && state.in_flight < self.max_in_flight
                && device.state().is_ready()
                && let Some(job) = state.waiting.pop_front()
            {
                state.in_flight += 1;
                return Next::Start(job, InFlight::new(self.clone(), device.driver().clone()));
            }
            state = self.sleep(state, deadline);
        }
    }

    /// Waits that long, unless the service is closed; whether it was.
    pub(crate) fn pause(&self, pause: Duration) -> bool {
        let end = Instant::now().checked_add(pause);
        let mut state = self.state();
        loop {
            // What was in flight when the device was lost is told now and not after the pause.
            if let Some(completed) = state.completed.pop_front() {
                drop(state);
                shielded(completed);
                state = self.state();
                continue;
            }
            if state.closing.is_some() || end.is_some_and(|end| Instant::now() >= end) {
                return state.closing.is_some();
            }
            state = self.sleep(state, end);
        }
    }

    pub(crate) fn load(&self) -> Load {
        let state = self.state();
        self.meter.load(state.waiting.len(), state.in_flight)
    }

    fn sleep<'a>(
        &self,
        state: MutexGuard<'a, QueueState>,
        end: Option<Instant>,
    ) -> MutexGuard<'a, QueueState> {
        match end {
            None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(end) => {
                let left = end.saturating_duration_since(Instant::now());
                self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request whose work is on the device. It counts as in in_flight until this is completed or dropped.
pub(crate) struct InFlight {
    queue: Arc<RequestQueue>,
    device: Arc<dyn Driver>,
    started: Duration,
    ended: Option<Duration>,
    served: Served,
}

impl InFlight {
    fn new(queue: Arc<RequestQueue>, device: Arc<dyn Driver>) -> Self {
        let started = device.clock().now();
        Self { queue, device, started, ended: None, served: Served::NotMeasured }
    }

    /// The work on the device is over.
    pub(crate) fn stop_clock(&mut self) {
        self.ended = Some(self.device.clock().now());
    }

    /// It is known how the request ended.
    pub(crate) fn complete(mut self, served: Served) {
        self.served = served;
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let ended = self.ended.unwrap_or_else(|| self.device.clock().now());
        self.queue.meter.record(self.served, ended.saturating_sub(self.started));
        self.queue.state().in_flight -= 1;
        self.queue.changed.notify_all();
    }
}
