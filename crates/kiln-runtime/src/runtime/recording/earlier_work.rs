//! Work that a device still had when its recording began.
//!
//! It is not in the recording, and the device is not idle while it runs. So the recording says which streams have such work, and when it was
//! done: where times are taken by events, an event stands behind it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use kiln_driver::{Command, EventId, EventRequest, Timeout, WaitTarget, Waited};
use kiln_order::Stamp;
use kiln_trace::{EarlierRecord, RecordingLane, TraceEvent};

use super::stream_lanes::StreamLanes;
use crate::runtime::inner::Inner;

/// The streams whose earlier work is not known to be done.
#[derive(Default)]
pub(super) struct EarlierWork {
    open: Mutex<Vec<OpenStream>>,
    /// Whether there are any, which is asked for often.
    is_open: AtomicBool,
}

/// One of them.
#[derive(Clone, Copy)]
struct OpenStream {
    /// The last submission before the recording.
    last: Stamp,
    /// What stands behind it.
    event: EventId,
}

impl EarlierWork {
    /// Notes the streams that have work now. With `marks`, an event is queued behind it.
    pub(super) fn note(runtime: &Inner, lanes: &StreamLanes, host: &RecordingLane, marks: bool) -> Self {
        let driver = runtime.driver();
        let mut open = Vec::new();
        runtime.tracker().each_stream(|stream| {
            let last = Stamp { stream: stream.key, number: stream.planned() };
            let is_done =
                || driver.wait(WaitTarget::Stream(stream.stream), Timeout::Poll).is_ok_and(Waited::is_done);
            if last.number == 0 || runtime.tracker().host().covers(last) || is_done() {
                return;
            }
            let stamp = lanes.stamp(last);
            host.push(TraceEvent::Earlier(EarlierRecord { stamp, until_ns: None }));
            if !marks {
                return;
            }
            // Without its event, the end stays unknown.
            let Ok(event) = driver.create_event(EventRequest::Timed) else { return };
            match driver.submit(stream.stream, &Command::Signal(event)) {
                Ok(_) => open.push(OpenStream { last, event }),
                Err(_) => drop(driver.destroy(event.into())),
            }
        });
        Self { is_open: AtomicBool::new(!open.is_empty()), open: Mutex::new(open) }
    }

    /// Records the end of what is done by now; where `asks`, the device is asked. `ended_ns` says when an event was passed.
    pub(super) fn collect(
        &self,
        runtime: &Inner,
        (lanes, host): (&StreamLanes, &RecordingLane),
        asks: bool,
        ended_ns: impl Fn(EventId) -> Option<u64>,
    ) {
        if !self.is_open.load(Ordering::Relaxed) {
            return;
        }
        let driver = runtime.driver();
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|OpenStream { last, event }| {
            let passed = || driver.wait(WaitTarget::Event(*event), Timeout::Poll).is_ok_and(Waited::is_done);
            // The host knows of work; the event behind it may be a moment later.
            if !(runtime.tracker().host().covers(*last) || asks) || !passed() {
                return true;
            }
            if let Some(until) = ended_ns(*event) {
                let stamp = lanes.stamp(*last);
                host.push(TraceEvent::Earlier(EarlierRecord { stamp, until_ns: Some(until) }));
            }
            let _ = driver.destroy((*event).into());
            false
        });
        self.is_open.store(!open.is_empty(), Ordering::Relaxed);
    }

    /// Gives the events back.
    pub(super) fn end(&self, runtime: &Inner) {
        for OpenStream { event, .. } in
            std::mem::take(&mut *self.open.lock().unwrap_or_else(PoisonError::into_inner))
        {
            // A lost device has no events.
            let _ = runtime.driver().destroy(event.into());
        }
    }
}
