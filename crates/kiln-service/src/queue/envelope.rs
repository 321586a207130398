//! A request on its way, which is answered exactly once whatever becomes of it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use kiln_runtime::internal::{Answer, wake};
use kiln_runtime::{DeviceRuntime, Result};

use super::desk::{Desk, Flight};
use crate::refused::{Refused, Why};
use crate::reply::{Answered, Reply};
use crate::request::Request;

/// A request of any type.
pub(crate) trait Job: Send {
    /// Queues its work on the device; the answer comes when that is done.
    fn start(self: Box<Self>, device: &DeviceRuntime, flight: Flight, desk: &Arc<Desk>);

    /// Sends it back.
    fn refuse(self: Box<Self>, why: Why);
}

/// A request whose work is on the device.
pub(crate) trait Aloft: Send + Sync {
    /// Sends it back without waiting for its work; false if it was answered already.
    fn abandon(&self) -> bool;
}

impl<R: Request> Aloft for Mutex<Option<Box<Envelope<R>>>> {
    fn abandon(&self) -> bool {
        take(self).map(|mut envelope| envelope.send_back(Why::Closed)).is_some()
    }
}

fn take<T>(from: &Mutex<Option<T>>) -> Option<T> {
    from.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// A request with the place its answer goes to.
pub(crate) struct Envelope<R: Request> {
    /// Taken when it is answered.
    request: Option<R>,
    answer: Arc<Answer<Answered<R>>>,
}

impl<R: Request> Envelope<R> {
    pub(crate) fn new(request: R) -> (Box<Self>, Reply<R>) {
        let answer = Arc::new(Answer::new());
        let reply = Reply { answer: answer.clone() };
        (Box::new(Self { request: Some(request), answer }), reply)
    }

    fn answer(&self, answer: Answered<R>) {
        if let Some(waker) = self.answer.give(answer) {
            wake(waker);
        }
    }

    fn send_back(&mut self, why: Why) {
        if let Some(request) = self.request.take() {
            self.answer(Err(Refused { why, request }));
        }
    }

    /// The work ended; `finish` has the output.
    fn finish(mut self, outcome: Result<()>, finish: impl FnOnce() -> Result<R::Output>) {
        let output = match outcome {
            Ok(()) => guarded(finish),
            Err(error) => Err(error.into()),
        };
        match output {
            Ok(output) => {
                // Dropped behind the answer, which nothing it does can take away.
                let _request = self.request.take();
                self.answer(Ok(output));
            }
            Err(why) => self.send_back(why),
        }
    }
}

impl<R: Request> Job for Envelope<R> {
    fn start(mut self: Box<Self>, device: &DeviceRuntime, flight: Flight, desk: &Arc<Desk>) {
        let Some(request) = &mut self.request else { return };
        let started = match guarded(|| request.start(device)) {
            Ok(started) => started,
            Err(why) => {
                flight.land();
                return self.send_back(why);
            }
        };
        let finish = started.finish;
        let Some(ticket) = started.ticket else {
            flight.land();
            return self.finish(Ok(()), finish);
        };
        let aloft = Arc::new(Mutex::new(Some(self)));
        let known: Arc<dyn Aloft> = aloft.clone();
        desk.remember(Arc::downgrade(&known));
        let desk = desk.clone();
        // What the work gives may be large and is made on the service's thread; the reactor only passes it on.
        ticket.on_done(move |outcome| {
            let landed = Box::new(move || {
                flight.land();
                if let Some(envelope) = take(&aloft) {
                    envelope.finish(outcome, finish);
                }
            });
            desk.land(landed);
        });
    }

    fn refuse(mut self: Box<Self>, why: Why) {
        self.send_back(why);
    }
}

impl<R: Request> Drop for Envelope<R> {
    fn drop(&mut self) {
        self.send_back(Why::Closed);
    }
}

/// Runs the caller's code; a panic is an answer too.
pub(crate) fn guarded<T>(run: impl FnOnce() -> Result<T>) -> std::result::Result<T, Why> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => Ok(result?),
        Err(panic) => Err(Why::Panicked { message: message(&*panic) }),
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
