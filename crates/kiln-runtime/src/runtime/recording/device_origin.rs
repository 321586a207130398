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
    pub(super) event: EventId,
    at_ns: u64,
    pub(super) generation: Generation,
}

/// How long a device may take to pass an event in a stream without work. It does so at once, unless it does not answer.
pub(super) const PASS_LIMIT: Duration = Duration::from_secs(2);

impl Origin {
    /// Sees that the device can be measured.
    pub(super) fn check(runtime: &Inner) -> Result<()> {
        let driver = runtime.driver();
        let event = driver.create_event(EventRequest::Timed)?;
        let passed = pass(runtime, event, || ());
        let _ = driver.destroy(event.into());
        passed.map(drop).map_err(Into::into)
    }

    /// Has the device pass an event; none if it does not in time.
    pub(super) fn take(runtime: &Inner, lanes: &StreamLanes) -> Result<Option<Self>> {
        let driver = runtime.driver();
        let event = driver.create_event(EventRequest::Timed)?;
        let mut origin = Self { event, at_ns: 0, generation: runtime.state().generation() };
        let passed = origin.signal(runtime, lanes);
        if !matches!(passed, Ok(true)) {
            let _ = driver.destroy(event.into());
        }
        Ok(passed?.then_some(origin))
    }

    /// Has the device pass the event again; whether it did in time.
    pub(super) fn signal(
        &mut self,
        runtime: &Inner,
        lanes: &StreamLanes,
    ) -> std::result::Result<bool, kiln_driver::Error> {
        let generation = runtime.state().generation();
        let passed_ns = pass(runtime, self.event, || lanes.now())?;
        if let Some(at_ns) = passed_ns {
            (self.at_ns, self.generation) = (at_ns, generation);
        }
        Ok(passed_ns.is_some())
    }

    /// When the work between two events ran.
    pub(super) fn span(&self, runtime: &Inner, events: EventPair) -> Option<TimeSpan> {
        Some(TimeSpan::new(self.since(runtime, events.start)?, self.since(runtime, events.end)?))
    }

    /// When an event was passed.
    pub(super) fn since(&self, runtime: &Inner, event: EventId) -> Option<u64> {
        let elapsed = runtime.driver().elapsed(self.event, event).ok()?;
        u64::try_from(elapsed.as_nanos()).ok()?.checked_add(self.at_ns)
    }
}

/// Signals an event in a stream without work, and waits for it; what `now` says then, or none if it is not passed in time. The work of the program is not
/// waited for.
fn pass<T>(
    runtime: &Inner,
    event: EventId,
    now: impl Fn() -> T,
) -> std::result::Result<Option<T>, kiln_driver::Error> {
    let (driver, main) = (runtime.driver(), runtime.main_stream().id());
    let passed_in = |stream| -> std::result::Result<Option<T>, kiln_driver::Error> {
        driver.submit(stream, &Command::Signal(event))?;
        let is_passed = driver.wait(WaitTarget::Event(event), Timeout::After(PASS_LIMIT))?.is_done();
        // At once: on a simulated device the next call takes time.
        Ok(is_passed.then(&now))
    };
    if driver.wait(WaitTarget::Stream(main), Timeout::Poll)?.is_done() {
        return passed_in(main);
    }
    let idle = driver.create_stream(StreamRequest::New { priority: 0 })?;
    let passed = passed_in(idle);
    let _ = driver.destroy(idle.into());
    passed
}
