//! A request on its way. It is answered exactly once, whatever happens to it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use kiln_runtime::internal::{ReplySlot, wake};
use kiln_runtime::{DeviceRuntime, Result};

use super::request_queue::{InFlight, RequestQueue};
use crate::refused::{RefusalReason, Refused};
use crate::reply::{Answered, Reply};
use crate::request::Request;
use crate::service_load::Served;

/// A request of any type.
pub(crate) trait Job: Send {
    /// Queues its work on the device; the answer comes when that is done.
    fn start(self: Box<Self>, device: &DeviceRuntime, in_flight: InFlight, queue: &Arc<RequestQueue>);

    /// Sends it to another service of its fleet, or back.
    fn refuse(self: Box<Self>, why: RefusalReason);

    /// Sends it back.
    fn send_back(self: Box<Self>, why: RefusalReason);

    /// Notes that it goes to a service of its fleet; false if it was there before.
    fn visit(&mut self, service: usize) -> bool;
}

/// Where a request goes that a service cannot take.
pub(crate) trait Elsewhere: Send + Sync {
    /// Puts it into the queue of a service that it was not in yet, or sends it back.
    fn send(&self, job: Box<dyn Job>, why: RefusalReason);
}

/// A request whose work is on the device.
pub(crate) trait Abandon: Send + Sync {
    /// Sends it back without waiting for its work; false if it was answered already.
    fn abandon(&self) -> bool;
}

impl<R: Request> Abandon for Mutex<Option<Box<QueuedRequest<R>>>> {
    fn abandon(&self) -> bool {
        take(self).map(|mut queued_request| queued_request.give_back(RefusalReason::Closed)).is_some()
    }
}

fn take<T>(from: &Mutex<Option<T>>) -> Option<T> {
    from.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// A request with the place its answer goes to.
pub(crate) struct QueuedRequest<R: Request> {
    /// Taken when it is answered.
    request: Option<R>,
    answer: Arc<ReplySlot<Answered<R>>>,
    /// Where it goes if a service cannot take it; none if it was sent to one service. It does not hold the services.
    elsewhere: Option<Weak<dyn Elsewhere>>,
    /// The services it was sent to.
    visited: Vec<usize>,
}

impl<R: Request> QueuedRequest<R> {
    pub(crate) fn new(request: R) -> (Box<Self>, Reply<R>) {
        let answer = Arc::new(ReplySlot::new());
        let reply = Reply { answer: answer.clone() };
        (Box::new(Self { request: Some(request), answer, elsewhere: None, visited: Vec::new() }), reply)
    }

    /// The same request, which may go to other services.
    pub(crate) fn routed(mut self: Box<Self>, elsewhere: Weak<dyn Elsewhere>) -> Box<Self> {
        self.elsewhere = Some(elsewhere);
        self
    }

    fn answer(&self, answer: Answered<R>) {
        if let Some(waker) = self.answer.give(answer) {
            wake(waker);
        }
    }

    fn give_back(&mut self, why: RefusalReason) {
        if let Some(request) = self.request.take() {
            self.answer(Err(Refused { why, request }));
        }
    }

    /// The work ended; `finish` has the output.
    fn finish(
        mut self,
        mut in_flight: InFlight,
        outcome: Result<()>,
        finish: impl FnOnce() -> Result<R::Output>,
    ) {
        in_flight.stop_clock();
        let output = match outcome {
            Ok(()) => guarded(finish),
            Err(error) => Err(error.into()),
        };
        in_flight.complete(output.as_ref().map_or_else(RefusalReason::served, |_| Served::Completed));
        match output {
            Ok(output) => {
                // Dropped behind the answer, which nothing it does can take away.
                let _request = self.request.take();
                self.answer(Ok(output));
            }
            Err(why) => self.give_back(why),
        }
    }
}

impl<R: Request> Job for QueuedRequest<R> {
    fn start(
        mut self: Box<Self>,
        device: &DeviceRuntime,
        mut in_flight: InFlight,
        queue: &Arc<RequestQueue>,
    ) {
        let Some(request) = &mut self.request else { return };
        let started = match guarded(|| request.start(device)) {
            Ok(started) => started,
            Err(why) => {
                in_flight.stop_clock();
                in_flight.complete(why.served());
                return self.refuse(why);
            }
        };
        let finish = started.finish;
        let Some(ticket) = started.ticket else {
            return self.finish(in_flight, Ok(()), finish);
        };
        let submitted = Arc::new(Mutex::new(Some(self)));
        let known: Arc<dyn Abandon> = submitted.clone();
        queue.remember(Arc::downgrade(&known));
        let queue = queue.clone();
        // The output may be large and is made on the service's thread; the reactor only passes it on.
        ticket.on_done(move |outcome| {
            let completed = Box::new(move || match take(&submitted) {
                Some(queued_request) => queued_request.finish(in_flight, outcome, finish),
                None => in_flight.complete(Served::NotMeasured),
            });
            queue.complete(completed);
        });
    }

    fn refuse(self: Box<Self>, why: RefusalReason) {
        let elsewhere = self.elsewhere.as_ref().filter(|_| why.is_of_device()).and_then(Weak::upgrade);
        match elsewhere {
            Some(elsewhere) => elsewhere.send(self, why),
            None => self.send_back(why),
        }
    }

    fn send_back(mut self: Box<Self>, why: RefusalReason) {
        self.give_back(why);
    }

    fn visit(&mut self, service: usize) -> bool {
        let is_new = !self.visited.contains(&service);
        if is_new {
            self.visited.push(service);
        }
        is_new
    }
}

impl<R: Request> Drop for QueuedRequest<R> {
    fn drop(&mut self) {
        self.give_back(RefusalReason::Closed);
    }
}

/// Runs the caller's code; a panic is an answer too.
pub(crate) fn guarded<T>(run: impl FnOnce() -> Result<T>) -> std::result::Result<T, RefusalReason> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => Ok(result?),
        Err(panic) => Err(RefusalReason::Panicked { message: message(&*panic) }),
    }
}

/// Runs what may drop something of the caller's; if that panics, nothing else is harmed.
pub(crate) fn shielded(run: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(run)).is_err() {
        tracing::error!("what a request brought along panicked when it was dropped");
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "it did not say why".into())
}
