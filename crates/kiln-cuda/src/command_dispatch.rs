//! Dispatches commands by kind.
//!
//! Each kind has a separate function that finds the stream and calls the driver, so that the path of one runs through no code of the others.

use kiln_driver::{Command, Error, EventId, Result, StreamId, Submission};

use crate::device::CudaDevice;
use crate::stream::Stream;
use crate::stream_progress::SubmissionKind;

const CALL: &str = "submit";

impl CudaDevice {
    #[inline]
    pub(crate) fn submit(&self, stream: StreamId, command: &Command<'_>) -> Result<Submission> {
        // Asked one after the other, the most frequent first: a table of jumps would be one more line to fetch.
        if let Command::Launch(launch) = command {
            return self.submit_launch(CALL, stream, launch);
        }
        match *command {
            Command::Signal(event) => self.submit_signal(stream, event),
            Command::Wait(event) => self.submit_wait(stream, event),
            Command::Graph(graph) => self.submit_graph(CALL, stream, graph),
            ref other => self.submit_transfer(stream, other),
        }
    }

    #[inline(never)]
    fn submit_transfer(&self, stream: StreamId, command: &Command<'_>) -> Result<Submission> {
        let stream = self.streams.pin(stream).map_err(|error| error.seen_by(CALL))?;
        let api = self.context.enter(CALL)?;
        match *command {
            Command::Copy { from, to, bytes } => self.submit_copy(CALL, api, &stream, from, to, bytes),
            Command::Fill { to, pattern, count } => self.submit_fill(CALL, api, &stream, to, pattern, count),
            ref other => Err(Error::unsupported(CALL, "this command", other.name())),
        }
    }

    #[inline(never)]
    fn submit_signal(&self, stream: StreamId, event: EventId) -> Result<Submission> {
        let pinned = self.streams.pin(stream).map_err(|error| error.seen_by(CALL))?;
        let stream: &Stream = &pinned;
        let api = stream.api(CALL)?;
        let event = self.events.pin(event).map_err(|error| error.seen_by(CALL))?;
        stream.queue(CALL, SubmissionKind::Signal, |number| event.record(api, stream, number))
    }

    #[inline(never)]
    fn submit_wait(&self, stream: StreamId, event: EventId) -> Result<Submission> {
        let pinned = self.streams.pin(stream).map_err(|error| error.seen_by(CALL))?;
        let stream: &Stream = &pinned;
        let api = stream.api(CALL)?;
        let event = self.events.pin(event).map_err(|error| error.seen_by(CALL))?;
        stream.queue(CALL, SubmissionKind::Wait, |_| {
            // An event from the pool may have an old record.
            if !event.was_signalled() {
                return 0;
            }
            // SAFETY: event and stream are pinned, and 0 is the default of the flags.
            unsafe { (api.stream_wait)(stream.raw(), event.raw(), 0) }
        })
    }
}
