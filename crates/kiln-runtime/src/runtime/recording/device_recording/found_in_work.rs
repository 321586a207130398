//! What the checks of the device found, with what is known of the work it was found in.

use std::panic::Location;
use std::sync::PoisonError;

use kiln_order::Stamp;

use super::DeviceRecording;
use crate::runtime::inner::Inner;
use crate::runtime::recording::finding_notes::FoundIn;

impl DeviceRecording {
    /// Records what the checks of the device found since the last time. Where it `asks`, the device is asked first, and no caller is told by that.
    pub(in crate::runtime) fn note_findings(&self, runtime: &Inner, asks: bool) {
        let Some(log) = runtime.findings() else { return };
        if asks {
            drop(log.unread());
        }
        let found = log.take_unrecorded();
        self.findings.note(found.iter().map(|(finding, stamp)| {
            let (submitted, end_ns) = stamp.and_then(|at| self.known(runtime, at)).unwrap_or_default();
            FoundIn { finding, stamp: *stamp, submitted, end_ns }
        }));
    }

    /// The line and the end of work.
    fn known(&self, runtime: &Inner, at: Stamp) -> Option<(Option<&'static Location<'static>>, Option<u64>)> {
        let measured = self.measured(at.stream)?;
        let Some(work) = measured.find(at.number) else {
            drop(measured);
            return self.written.find(at);
        };
        let span = work.events().zip(self.origin.as_ref()).and_then(|(events, origin)| {
            origin.lock().unwrap_or_else(PoisonError::into_inner).span(runtime, &self.lanes, events)
        });
        Some((work.note.line, span.map(|span| span.end_ns)))
    }
}
