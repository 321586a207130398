//! Commands: each kind to its own file.

use kiln_driver::{Command, Error, EventId, Result, StreamId, Submission};

use crate::api::Api;
use crate::device::CudaDevice;
use crate::journal::Entry;
use crate::stream::Stream;

impl CudaDevice {
    pub(crate) fn submit(&self, stream: StreamId, command: &Command<'_>) -> Result<Submission> {
        const CALL: &str = "submit";
        let stream = self.streams.pin(stream).map_err(|error| error.seen_by(CALL))?;
        let api = if names_its_context(&stream, command) {
            self.context.pass(CALL)?
        } else {
            self.context.enter(CALL)?
        };
        match *command {
            Command::Launch(ref launch) => self.submit_launch(CALL, api, &stream, launch),
            Command::Copy { from, to, bytes } => self.submit_copy(CALL, api, &stream, from, to, bytes),
            Command::Fill { to, pattern, count } => self.submit_fill(CALL, api, &stream, to, pattern, count),
            Command::Signal(event) => self.submit_signal(CALL, api, &stream, event),
            Command::Wait(event) => self.submit_wait(CALL, api, &stream, event),
            Command::Graph(graph) => self.submit_graph(CALL, api, &stream, graph),
            ref other => Err(Error::unsupported(CALL, "this command", other.name())),
        }
    }

    fn submit_signal(
        &self,
        call: &'static str,
        api: &Api,
        stream: &Stream,
        event: EventId,
    ) -> Result<Submission> {
        let event = self.events.pin(event).map_err(|error| error.seen_by(call))?;
        stream.queue(call, Entry::Signal, |number| event.record(api, stream, number))
    }

    fn submit_wait(
        &self,
        call: &'static str,
        api: &Api,
        stream: &Stream,
        event: EventId,
    ) -> Result<Submission> {
        let event = self.events.pin(event).map_err(|error| error.seen_by(call))?;
        stream.queue(call, Entry::Wait, |_| {
            // An event from the pool may carry the record of its former life.
            if !event.was_signalled() {
                return 0;
            }
            // SAFETY: event and stream are pinned, and 0 is the default of the flags.
            unsafe { (api.stream_wait)(stream.raw(), event.raw(), 0) }
        })
    }
}

/// Whether the driver finds the context by the handles it is given. Another library's stream may be the default one of whatever
/// context is current.
#[inline]
fn names_its_context(stream: &Stream, command: &Command<'_>) -> bool {
    stream.is_owned()
        && match command {
            Command::Launch(launch) => !launch.cooperative && launch.cluster.is_none(),
            Command::Signal(_) | Command::Wait(_) | Command::Graph(_) => true,
            _ => false,
        }
}
