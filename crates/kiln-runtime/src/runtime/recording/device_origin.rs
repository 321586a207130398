//! The moment from which a device's times are counted.

use kiln_driver::{Command, EventId, EventRequest, Timeout, WaitTarget};
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

impl Origin {
    /// Signals an event on the main stream, and waits for it.
    pub(super) fn take(runtime: &Inner, lanes: &StreamLanes) -> Result<Self> {
        let driver = runtime.driver();
        let event = driver.create_event(EventRequest::Timed)?;
        let mut origin = Self { event, at_ns: 0, generation: runtime.state().generation() };
        match origin.signal(runtime, lanes) {
            Ok(()) => Ok(origin),
            Err(error) => {
                let _ = driver.destroy(event.into());
                Err(error.into())
            }
        }
    }

    /// Signals the event, and waits for it.
    pub(super) fn signal(
        &mut self,
        runtime: &Inner,
        lanes: &StreamLanes,
    ) -> std::result::Result<(), kiln_driver::Error> {
        let (driver, stream) = (runtime.driver(), runtime.main_stream().id());
        let generation = runtime.state().generation();
        driver.submit(stream, &Command::Signal(self.event))?;
        driver.wait(WaitTarget::Event(self.event), Timeout::Never).map(drop)?;
        (self.at_ns, self.generation) = (lanes.now(), generation);
        Ok(())
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
