//! The moment from which a device's times are counted.

use std::time::Duration;

use kiln_driver::{Command, EventId, EventRequest, StreamRequest, Timeout, WaitTarget};
use kiln_trace::TimeSpan;

use super::stream_lanes::StreamLanes;
use crate::error::Result;
use crate::ids::Generation;
use crate::runtime::inner::Inner;
use crate::runtime::timing::EventPair;

/// An event from which the device's times are counted. A worker that took over has its own.
#[derive(Clone, Copy)]
pub(super) struct Origin {
    event: EventId,
    /// What the clock of the device said when it was passed.
    clock: Duration,
    pub(super) generation: Generation,
}

/// How long a device may take to pass an event in a stream without work. It does so at once, unless it does not answer.
pub(super) const PASS_LIMIT: Duration = Duration::from_secs(2);

impl Origin {
    /// Has the device pass an event; none if it does not in time.
    pub(super) fn take(runtime: &Inner) -> Result<Option<Self>> {
        let event = runtime.driver().create_event(EventRequest::Timed)?;
        let mut origin = Self { event, clock: Duration::ZERO, generation: runtime.state().generation() };
        let passed = origin.signal(runtime);
        if !matches!(passed, Ok(true)) {
            origin.give_back(runtime);
        }
        Ok(passed?.then_some(origin))
    }

    /// Has the device pass the event again; whether it did in time.
    pub(super) fn signal(&mut self, runtime: &Inner) -> std::result::Result<bool, kiln_driver::Error> {
        let generation = runtime.state().generation();
        let passed = pass(runtime, self.event)?;
        if let Some(clock) = passed {
            (self.clock, self.generation) = (clock, generation);
        }
        Ok(passed.is_some())
    }

    /// When the work between two events ran.
    pub(super) fn span(&self, runtime: &Inner, lanes: &StreamLanes, events: EventPair) -> Option<TimeSpan> {
        let since = |event| self.since(runtime, lanes, event);
        Some(TimeSpan::new(since(events.start)?, since(events.end)?))
    }

    /// When an event was passed.
    pub(super) fn since(&self, runtime: &Inner, lanes: &StreamLanes, event: EventId) -> Option<u64> {
        let elapsed = runtime.driver().elapsed(self.event, event).ok()?;
        Some(lanes.time_at(self.clock.saturating_add(elapsed)))
    }

    /// Destroys the event.
    pub(super) fn give_back(&self, runtime: &Inner) {
        // A lost device has no events.
        let _ = runtime.driver().destroy(self.event.into());
    }
}

/// Signals an event in a stream without work, and waits for it; what the device's clock says then, or none if it is not passed in time. The work of the
/// program is not waited for.
fn pass(runtime: &Inner, event: EventId) -> std::result::Result<Option<Duration>, kiln_driver::Error> {
    let (driver, main) = (runtime.driver(), runtime.main_stream().id());
    let passed_in = |stream| -> std::result::Result<Option<Duration>, kiln_driver::Error> {
        driver.submit(stream, &Command::Signal(event))?;
        let is_passed = driver.wait(WaitTarget::Event(event), Timeout::After(PASS_LIMIT))?.is_done();
        // At once: on a simulated device the next call takes time.
        Ok(is_passed.then(|| driver.clock().now()))
    };
    if driver.wait(WaitTarget::Stream(main), Timeout::Poll)?.is_done() {
        return passed_in(main);
    }
    let idle = driver.create_stream(StreamRequest::New { priority: 0 })?;
    let passed = passed_in(idle);
    let _ = driver.destroy(idle.into());
    passed
}
