//! When each copy and kernel ran, measured on the device.
//!
//! A layer around the driver that records a timed event right before and after each copy and launch, on the same stream, so that waits
//! for other streams do not count. It works the same on a GPU and on the simulated device, whose time is virtual.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kiln_driver::call::{Answer, Call};
use kiln_driver::layer::Layer;
use kiln_driver::{Command, Driver, Error, EventId, EventRequest, Place, StreamId};

use super::timeline::Work;

/// Measures submissions.
pub(crate) struct Stopwatch {
    driver: Arc<dyn Driver>,
    laps: Mutex<Laps>,
}

#[derive(Default)]
struct Laps {
    /// Recorded on the first stream that was used; everything is measured from here.
    origin: Option<EventId>,
    started: Vec<Lap>,
    /// Submissions that were not measured.
    missed: u64,
}

struct Lap {
    stream: StreamId,
    work: Work,
    before: EventId,
    after: Option<EventId>,
}

/// A measured piece of work.
pub(crate) struct Measured {
    pub(crate) stream: StreamId,
    pub(crate) work: Work,
    pub(crate) start: Duration,
    pub(crate) end: Duration,
}

impl Stopwatch {
    /// A stopwatch that records on this driver.
    pub(crate) fn new(driver: Arc<dyn Driver>) -> Self {
        Self { driver, laps: Mutex::default() }
    }

    /// The measurements, when all work is done, and how many submissions were not measured; destroys the events.
    ///
    /// # Errors
    /// The device is lost.
    pub(crate) fn stop(&self) -> kiln::Result<(Vec<Measured>, u64)> {
        let Laps { origin, started, missed } = std::mem::take(&mut *self.laps());
        let mut measured = Vec::with_capacity(started.len());
        let mut events: Vec<EventId> = origin.into_iter().collect();
        for lap in started {
            events.push(lap.before);
            let Some((origin, after)) = origin.zip(lap.after) else { continue };
            events.push(after);
            let start = self.driver.elapsed(origin, lap.before)?;
            let end = self.driver.elapsed(origin, after)?;
            measured.push(Measured { stream: lap.stream, work: lap.work, start, end });
        }
        for event in events {
            self.driver.destroy(event.into())?;
        }
        Ok((measured, missed))
    }

    fn record(&self, stream: StreamId) -> Result<EventId, Error> {
        let event = self.driver.create_event(EventRequest::Timed)?;
        self.driver.submit(stream, &Command::Signal(event))?;
        Ok(event)
    }

    fn begin(&self, stream: StreamId, work: Work) -> Result<(), Error> {
        if self.laps().origin.is_none() {
            let origin = self.record(stream)?;
            self.laps().origin = Some(origin);
        }
        let before = self.record(stream)?;
        self.laps().started.push(Lap { stream, work, before, after: None });
        Ok(())
    }

    fn laps(&self) -> MutexGuard<'_, Laps> {
        self.laps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Layer for Stopwatch {
    fn before(&self, _: &dyn Driver, call: &Call<'_>) -> kiln_driver::Result<()> {
        if let Some((stream, work)) = measurable(call) {
            // A failure to measure does not stop the work.
            if self.begin(stream, work).is_err() {
                self.laps().missed += 1;
            }
        }
        Ok(())
    }

    fn after(&self, call: &Call<'_>, _: Result<Answer<'_>, &Error>) {
        let Some((stream, _)) = measurable(call) else { return };
        match self.record(stream) {
            Ok(event) => {
                let mut laps = self.laps();
                let open =
                    laps.started.iter_mut().rev().find(|lap| lap.stream == stream && lap.after.is_none());
                if let Some(lap) = open {
                    lap.after = Some(event);
                }
            }
            Err(_) => self.laps().missed += 1,
        }
    }
}

/// Copies and launches are measured; waits and signals are not.
fn measurable(call: &Call<'_>) -> Option<(StreamId, Work)> {
    let Call::Submit { stream, command } = call else { return None };
    let work = match command {
        Command::Copy { from: Place::Host { .. }, .. } => Work::Upload,
        Command::Copy { to: Place::Host { .. }, .. } => Work::Download,
        Command::Launch(_) => Work::Kernel,
        Command::Copy { .. } | Command::Fill { .. } => Work::Other,
        _ => return None,
    };
    Some((*stream, work))
}
