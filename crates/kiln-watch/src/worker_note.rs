//! Which worker processes had the devices of a recording, and when.

use kiln_trace::{TakeoverPhase, TraceEvent, plain_text};
use serde::Serialize;

/// Workers that are listed.
const MAX_WORKERS: usize = 500;

/// A worker process that had a device.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct WorkerNote {
    /// The device.
    pub device: u32,
    /// The number of the process in the operating system.
    pub process: u32,
    /// The name of its program.
    pub name: String,
    /// From when on it had the device.
    pub begin_ns: u64,
    /// When the device was lost, or the recording ended; none if it has the device as far as the recording was read.
    pub end_ns: Option<u64>,
}

/// The workers of a recording, the first few.
#[derive(Default)]
pub(crate) struct Workers {
    notes: Vec<WorkerNote>,
}

impl Workers {
    /// Takes an event.
    pub(crate) fn add(&mut self, event: &TraceEvent<'_>) {
        match event {
            TraceEvent::Worker(worker) => {
                self.end(Some(worker.device), worker.time_ns);
                if self.notes.len() < MAX_WORKERS {
                    self.notes.push(WorkerNote {
                        device: worker.device,
                        process: worker.process,
                        name: plain_text(worker.name).into_owned(),
                        begin_ns: worker.time_ns,
                        end_ns: None,
                    });
                }
            }
            TraceEvent::Takeover(step) if step.phase == TakeoverPhase::Lost => {
                self.end(Some(step.device), step.span.begin_ns);
            }
            TraceEvent::End(end) => self.end(None, end.time_ns),
            _ => {}
        }
    }

    pub(crate) fn notes(&self) -> &[WorkerNote] {
        &self.notes
    }

    /// The workers that have a device, or all of them, have it no more.
    fn end(&mut self, device: Option<u32>, time_ns: u64) {
        for note in &mut self.notes {
            if note.end_ns.is_none() && device.is_none_or(|device| device == note.device) {
                note.end_ns = Some(time_ns.max(note.begin_ns));
            }
        }
    }
}
