//! Where requests wait, and where the service's thread is told what to do next.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use kiln_driver::Driver;
use kiln_runtime::internal::FollowedState;
use kiln_runtime::state::Phase;
use kiln_runtime::{DeviceRuntime, Error, Status};

use super::envelope::{Aloft, Job, shielded};
use crate::load::{Load, Meter, Served};
use crate::refused::Why;

/// A request whose work is done, to be answered on the service's thread.
type Landed = Box<dyn FnOnce() + Send>;

/// The queue of a service and what its thread has to look at.
pub(crate) struct Desk {
    pub(crate) state: FollowedState,
    inbox: Mutex<Inbox>,
    changed: Condvar,
    meter: Meter,
    max_queued: usize,
    max_in_flight: usize,
}

struct Inbox {
    waiting: VecDeque<Box<dyn Job>>,
    landed: VecDeque<Landed>,
    in_flight: usize,
    /// Changes of the state of a device that were not followed yet, and which of the service's devices it is.
    news: VecDeque<(u64, Status)>,
    /// No new requests; those that wait are dealt with until then.
    closing: Option<Option<Instant>>,
    /// Why the service failed.
    failure: Option<Error>,
    aloft: Vec<Weak<dyn Aloft>>,
    /// The thread is gone.
    ended: bool,
    /// Something was sent back at the end.
    unfinished: bool,
}

/// What to do next.
pub(crate) enum Next {
    /// Answer a request.
    Answer(Landed),
    /// Start one.
    Start(Box<dyn Job>, Flight),
    /// Follow a change of the state of one of the service's devices.
    Follow(u64, Status),
    /// The end.
    End,
}

impl Desk {
    pub(crate) fn new(max_queued: usize, max_in_flight: usize) -> Self {
        let inbox = Inbox {
            waiting: VecDeque::new(),
            landed: VecDeque::new(),
            in_flight: 0,
            news: VecDeque::new(),
            closing: None,
            failure: None,
            aloft: Vec::new(),
            ended: false,
            unfinished: false,
        };
        Self {
            state: FollowedState::default(),
            inbox: Mutex::new(inbox),
            changed: Condvar::new(),
            meter: Meter::default(),
            max_queued,
            max_in_flight: max_in_flight.max(1),
        }
    }

    /// Puts a request in line, or says why not.
    pub(crate) fn put(&self, job: Box<dyn Job>) -> Result<(), (Box<dyn Job>, Why)> {
        let mut inbox = self.inbox();
        let why = match &inbox.failure {
            _ if inbox.closing.is_some() => Some(Why::Closed),
            Some(error) => Some(Why::Device(error.clone())),
            None if inbox.waiting.len() >= self.max_queued => Some(Why::Full { limit: self.max_queued }),
            None => None,
        };
        if let Some(why) = why {
            return Err((job, why));
        }
        inbox.waiting.push_back(job);
        drop(inbox);
        self.changed.notify_all();
        Ok(())
    }

    /// Takes the end of a request's work.
    pub(crate) fn land(&self, landed: Landed) {
        let mut inbox = self.inbox();
        if inbox.ended {
            // There is no device left to do it.
            drop(inbox);
            return landed();
        }
        inbox.landed.push_back(landed);
        drop(inbox);
        self.changed.notify_all();
    }

    /// Remembers a request whose work is on the device, in case the waiter is gone.
    pub(crate) fn remember(&self, job: Weak<dyn Aloft>) {
        let mut inbox = self.inbox();
        if inbox.aloft.len() > 2 * self.max_in_flight {
            inbox.aloft.retain(|job| job.strong_count() > 0);
        }
        inbox.aloft.push(job);
    }

    /// The state of one of the service's devices changed.
    pub(crate) fn tell(&self, device: u64, status: Status) {
        self.inbox().news.push_back((device, status));
        self.changed.notify_all();
    }

    /// No new requests from here on; those that wait are dealt with for so long.
    pub(crate) fn close(&self, limit: Duration) {
        let mut inbox = self.inbox();
        if inbox.closing.is_none() {
            inbox.closing = Some(Instant::now().checked_add(limit));
        }
        drop(inbox);
        self.changed.notify_all();
    }

    /// The service has failed: all present and future requests are told.
    pub(crate) fn fail(&self, error: &Error) {
        let waiting = {
            let mut inbox = self.inbox();
            inbox.failure = Some(error.clone());
            std::mem::take(&mut inbox.waiting)
        };
        waiting.into_iter().for_each(|job| shielded(|| job.refuse(Why::Device(error.clone()))));
    }

    /// The end: answers what is done and sends everything else back.
    pub(crate) fn end(&self) {
        let (waiting, landed, aloft) = {
            let mut inbox = self.inbox();
            inbox.ended = true;
            inbox.unfinished |= !inbox.waiting.is_empty();
            let waiting = std::mem::take(&mut inbox.waiting);
            (waiting, std::mem::take(&mut inbox.landed), std::mem::take(&mut inbox.aloft))
        };
        landed.into_iter().for_each(shielded);
        for job in aloft.iter().filter_map(Weak::upgrade) {
            shielded(|| {
                let abandoned = job.abandon();
                self.inbox().unfinished |= abandoned;
            });
        }
        waiting.into_iter().for_each(|job| shielded(|| job.refuse(Why::Closed)));
    }

    /// Whether nothing was sent back at the end.
    pub(crate) fn dealt_with_everything(&self) -> bool {
        !self.inbox().unfinished
    }

    /// What to do next; waits until there is something. Requests are started while `device` is there and ready.
    pub(crate) fn next(self: &Arc<Self>, device: Option<&DeviceRuntime>) -> Next {
        let mut inbox = self.inbox();
        loop {
            if let Some(landed) = inbox.landed.pop_front() {
                return Next::Answer(landed);
            }
            if let Some((device, status)) = inbox.news.pop_front() {
                return Next::Follow(device, status);
            }
            let deadline = inbox.closing.flatten();
            if inbox.closing.is_some() {
                let over = deadline.is_none_or(|end| Instant::now() >= end);
                // A device that comes back by itself is waited for as long as there is time.
                let stuck = device.is_none_or(|device| device.status().phase().is_over());
                let done = inbox.in_flight == 0 && (inbox.waiting.is_empty() || stuck);
                if over || done {
                    return Next::End;
                }
            }
            if let Some(device) = device.filter(|_| self.state.phase() != Phase::Rebuilding)
                && inbox.in_flight < self.max_in_flight
                && device.state().is_ready()
                && let Some(job) = inbox.waiting.pop_front()
            {
                inbox.in_flight += 1;
                return Next::Start(job, Flight::new(self.clone(), device.driver().clone()));
            }
            inbox = self.sleep(inbox, deadline);
        }
    }

    /// Waits that long, unless the service is closed; whether it was.
    pub(crate) fn pause(&self, pause: Duration) -> bool {
        let end = Instant::now().checked_add(pause);
        let mut inbox = self.inbox();
        loop {
            // What was in flight when the device was lost is told now and not after the pause.
            if let Some(landed) = inbox.landed.pop_front() {
                drop(inbox);
                shielded(landed);
                inbox = self.inbox();
                continue;
            }
            if inbox.closing.is_some() || end.is_some_and(|end| Instant::now() >= end) {
                return inbox.closing.is_some();
            }
            inbox = self.sleep(inbox, end);
        }
    }

    pub(crate) fn load(&self) -> Load {
        let inbox = self.inbox();
        self.meter.load(inbox.waiting.len(), inbox.in_flight)
    }

    fn sleep<'a>(&self, inbox: MutexGuard<'a, Inbox>, end: Option<Instant>) -> MutexGuard<'a, Inbox> {
        match end {
            None => self.changed.wait(inbox).unwrap_or_else(PoisonError::into_inner),
            Some(end) => {
                let left = end.saturating_duration_since(Instant::now());
                self.changed.wait_timeout(inbox, left).unwrap_or_else(PoisonError::into_inner).0
            }
        }
    }

    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request whose work is on the device. It counts as in flight until this is landed or dropped.
pub(crate) struct Flight {
    desk: Arc<Desk>,
    device: Arc<dyn Driver>,
    started: Duration,
    ended: Option<Duration>,
    served: Served,
}

impl Flight {
    fn new(desk: Arc<Desk>, device: Arc<dyn Driver>) -> Self {
        let started = device.clock().now();
        Self { desk, device, started, ended: None, served: Served::NotMeasured }
    }

    /// The work on the device is over.
    pub(crate) fn stop_clock(&mut self) {
        self.ended = Some(self.device.clock().now());
    }

    /// It is known how the request ended.
    pub(crate) fn land(mut self, served: Served) {
        self.served = served;
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let ended = self.ended.unwrap_or_else(|| self.device.clock().now());
        self.desk.meter.record(self.served, ended.saturating_sub(self.started));
        self.desk.inbox().in_flight -= 1;
        self.desk.changed.notify_all();
    }
}
