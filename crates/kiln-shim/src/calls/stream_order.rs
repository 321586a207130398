//! The streams of a context, and how its default stream orders them.
//!
//! Work on the legacy default stream runs after everything that was queued before on the blocking streams of the context, and before what is queued
//! on them later. Streams made with `CU_STREAM_NON_BLOCKING` do not take part. The edges are made when they are needed: a blocking stream that got no work since the
//! default stream last waited for it is not waited for again.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread::ThreadId;

use kiln_driver::{
    Code, Command, Driver, DriverExt, EventId, EventRequest, GraphId, HostBlock, MemoryId, StreamId,
    StreamRequest, Submission,
};

use crate::boundary::{Answer, OrCode};
use crate::calls::capture::{CAPTURE_IMPLICIT, CAPTURE_UNSUPPORTED, Captures};
use crate::calls::covered_copies::Covered;
use crate::calls::graph_work::NodeWork;
use crate::calls::staging::StagedBlock;
use crate::calls::staging_pool::{Finished, StagingPool};
use crate::calls::stream_places::{StreamPlace, StreamPlaces};
use crate::calls::streams::Stream;

pub(crate) struct StreamOrder {
    driver: Arc<dyn Driver>,
    legacy: StreamId,
    /// How often work was put on the legacy stream.
    legacy_turns: u64,
    places: StreamPlaces,
    per_thread: HashMap<ThreadId, Arc<Stream>>,
    /// The ends of streams that were destroyed with work on them.
    orphans: Vec<EventId>,
    /// Work that is recorded instead of queued.
    pub(crate) captures: Captures,
    /// Events that can be signalled again.
    spare: Vec<EventId>,
    /// For work of the library itself, which no stream of the program waits for.
    setup: Option<StreamId>,
    /// Pinned memory that copies of pageable memory go through.
    pub(crate) staging: StagingPool<StreamId, HostBlock>,
    /// Graphs that the program destroyed, launches of which may be queued, and memory that work in a queue may still read.
    retired: Retired,
    /// Host memory that copies of graphs go through.
    graph_blocks: Vec<HostBlock>,
}

/// What was kept until all work was done, and is to be ended when no lock is held.
#[derive(Clone, Default)]
pub(crate) struct Retired {
    graphs: Vec<GraphId>,
    memory: Vec<MemoryId>,
}

impl Retired {
    /// Ends it.
    pub(crate) fn end(self, driver: &dyn Driver) {
        for memory in self.memory {
            // A lost device keeps nothing.
            let _ = driver.free(memory, None);
        }
        for graph in self.graphs {
            let _ = driver.destroy(graph.into());
        }
    }
}

/// A stream that a call names.
#[derive(Clone)]
pub(crate) enum StreamChoice {
    Legacy,
    Stream(Arc<Stream>),
}

impl StreamOrder {
    pub(crate) fn new(driver: Arc<dyn Driver>) -> Answer<Self> {
        let legacy = driver.create_stream(StreamRequest::New { priority: 0 }).or_code()?;
        Ok(Self {
            driver,
            legacy,
            legacy_turns: 0,
            places: StreamPlaces::default(),
            per_thread: HashMap::new(),
            orphans: Vec::new(),
            captures: Captures::default(),
            spare: Vec::new(),
            setup: None,
            staging: StagingPool::default(),
            retired: Retired::default(),
            graph_blocks: Vec::new(),
        })
    }

    pub(crate) fn add(&mut self, stream: &Arc<Stream>) {
        let place = StreamPlace { is_blocking: stream.is_blocking(), has_work: false, seen_turns: 0 };
        self.places.insert(stream.id, place);
    }

    /// The stream of the calling thread, if it has one.
    pub(crate) fn of_thread(&self) -> Option<Arc<Stream>> {
        self.per_thread.get(&std::thread::current().id()).cloned()
    }

    pub(crate) fn add_of_thread(&mut self, stream: Arc<Stream>) {
        self.add(&stream);
        self.per_thread.insert(std::thread::current().id(), stream);
    }

    /// Takes a stream out; its queued work still runs.
    pub(crate) fn remove(&mut self, stream: StreamId) -> Answer {
        let Some(place) = self.places.remove(stream) else { return Ok(()) };
        self.captures.leave(stream);
        if self.driver.progress(stream).or_code()?.submitted == Submission(0) {
            // Nothing is to be waited for.
            return self.driver.destroy(stream.into()).or_code();
        }
        let event = self.event()?;
        self.driver.submit(stream, &Command::Signal(event)).or_code()?;
        self.orphans.push(event);
        if place.is_blocking {
            // The default stream waits for it now, as it cannot later.
            self.driver.submit(self.legacy, &Command::Wait(event)).or_code()?;
            self.legacy_turns += 1;
        }
        self.driver.destroy(stream.into()).or_code()
    }

    /// Prepares a stream for a submission, and says which it is below. A stream that captures is not for this.
    pub(crate) fn enter(&mut self, choice: &StreamChoice) -> Answer<StreamId> {
        self.refuse_capture(choice)?;
        match choice {
            StreamChoice::Legacy => self.enter_legacy(),
            StreamChoice::Stream(stream) => self.enter_stream(stream.id),
        }
    }

    /// The same, but nothing for a stream that captures.
    pub(crate) fn enter_if_it_runs(&mut self, choice: &StreamChoice) -> Answer<Option<StreamId>> {
        if self.is_capturing(choice) { Ok(None) } else { self.enter(choice).map(Some) }
    }

    /// The stream below, for waits and questions.
    pub(crate) fn look(&self, choice: &StreamChoice) -> StreamId {
        match choice {
            StreamChoice::Legacy => self.legacy,
            StreamChoice::Stream(stream) => stream.id,
        }
    }

    /// Queues a command, or records it if the stream captures.
    pub(crate) fn submit(&mut self, choice: &StreamChoice, command: &Command<'_>) -> Answer {
        if matches!(choice, StreamChoice::Legacy) {
            self.refuse_legacy()?;
        }
        if self.captures.take(self.look(choice), command)? {
            return Ok(());
        }
        if let Command::Signal(event) = command {
            self.captures.forget(*event);
        }
        let stream = self.enter(choice)?;
        self.driver.submit(stream, command).or_code().map(|_| ())
    }

    /// Adds work to the capture of a stream.
    pub(crate) fn record(&mut self, choice: &StreamChoice, work: NodeWork) -> Answer {
        self.captures.record(self.look(choice), work)
    }

    /// Whether a stream captures.
    pub(crate) fn is_capturing(&self, choice: &StreamChoice) -> bool {
        self.captures.has(self.look(choice))
    }

    /// An error for what cannot be captured, which ends the use of the capture.
    pub(crate) fn refuse_capture(&mut self, choice: &StreamChoice) -> Answer {
        if matches!(choice, StreamChoice::Legacy) {
            return self.refuse_legacy();
        }
        if !self.is_capturing(choice) {
            return Ok(());
        }
        self.captures.spoil(self.look(choice));
        Err(CAPTURE_UNSUPPORTED)
    }

    /// Whether the legacy stream cannot be used: it stands for the blocking streams, too, and one of those captures.
    pub(crate) fn is_legacy_unusable(&self) -> bool {
        self.captures.has_any(|stream| self.places.is_blocking(stream))
    }

    /// An error while the legacy stream cannot be used, which ends the use of those captures.
    fn refuse_legacy(&mut self) -> Answer {
        let Self { captures, places, .. } = self;
        if captures.spoil_any(|stream| places.is_blocking(stream)) { Err(CAPTURE_IMPLICIT) } else { Ok(()) }
    }

    /// An error while any stream captures, which ends the use of those captures.
    pub(crate) fn refuse_all_captures(&mut self) -> Answer {
        if self.captures.spoil_any(|_| true) { Err(CAPTURE_UNSUPPORTED) } else { Ok(()) }
    }

    /// Puts the legacy stream behind all that is queued on any stream, blocking or not.
    pub(crate) fn gather(&mut self) -> Answer<StreamId> {
        self.refuse_legacy()?;
        let legacy = self.legacy;
        let (streams, _) = self.everything();
        for stream in streams.into_iter().filter(|stream| *stream != legacy) {
            self.edge(stream, legacy)?;
        }
        self.legacy_turns += 1;
        Ok(legacy)
    }

    /// Puts all streams, blocking or not, behind what is queued on the legacy stream.
    pub(crate) fn scatter(&mut self) -> Answer {
        let legacy = self.legacy;
        let streams: Vec<StreamId> = self.places.streams().collect();
        streams.into_iter().try_for_each(|stream| self.edge(legacy, stream))
    }

    fn enter_legacy(&mut self) -> Answer<StreamId> {
        let behind: Vec<StreamId> = self
            .places
            .iter_mut()
            .filter(|(_, place)| place.is_blocking && place.has_work)
            .map(|(stream, place)| {
                place.has_work = false;
                *stream
            })
            .collect();
        for stream in behind {
            self.edge(stream, self.legacy)?;
        }
        self.legacy_turns += 1;
        Ok(self.legacy)
    }

    fn enter_stream(&mut self, stream: StreamId) -> Answer<StreamId> {
        let turns = self.legacy_turns;
        let Some(place) = self.places.get_mut(stream) else { return Err(Code::INVALID_HANDLE) };
        if !place.is_blocking {
            return Ok(stream);
        }
        place.has_work = true;
        if place.seen_turns < turns {
            place.seen_turns = turns;
            self.edge(self.legacy, stream)?;
        }
        Ok(stream)
    }

    /// The stream for work of the library itself.
    pub(crate) fn setup_stream(&mut self) -> Answer<StreamId> {
        match self.setup {
            Some(stream) => Ok(stream),
            None => {
                let stream = self.driver.create_stream(StreamRequest::New { priority: 0 }).or_code()?;
                Ok(*self.setup.insert(stream))
            }
        }
    }

    /// Makes one stream wait for another.
    pub(crate) fn edge(&mut self, before: StreamId, after: StreamId) -> Answer {
        let event = self.event()?;
        let ordered = self.driver.order(before, event, after).or_code();
        // The wait keeps what the event was signalled for, so that the event can be signalled again.
        self.spare.push(event);
        ordered
    }

    /// An event that can be signalled.
    pub(crate) fn event(&mut self) -> Answer<EventId> {
        match self.spare.pop() {
            Some(event) => Ok(event),
            None => self.driver.create_event(EventRequest::Timed).or_code(),
        }
    }

    /// Takes an event back that the program is done with. Work may still wait for it.
    pub(crate) fn give_back(&mut self, event: EventId) {
        self.captures.forget(event);
        self.spare.push(event);
    }

    /// All streams, and the ends of those that are gone.
    pub(crate) fn everything(&mut self) -> (Vec<StreamId>, Vec<EventId>) {
        // The legacy stream waits for what destroyed streams still do.
        let orphans = self.orphans.clone();
        for event in &orphans {
            // A lost device is told by the wait that follows.
            let _ = self.driver.submit(self.legacy, &Command::Wait(*event));
        }
        let mut streams: Vec<StreamId> = self.places.streams().collect();
        streams.push(self.legacy);
        (streams, orphans)
    }

    pub(crate) fn forget_orphans(&mut self, done: &[EventId]) {
        // Another thread that waited for the same may have been here before.
        let gone = self.orphans.extract_if(.., |event| done.contains(event));
        self.spare.extend(gone);
    }

    /// Keeps host memory that a copy was queued through until its stream is waited for; whether that should happen now.
    pub(crate) fn keep_staged(&mut self, choice: &StreamChoice, staged: StagedBlock) -> bool {
        let stream = self.look(choice);
        let is_blocking = matches!(choice, StreamChoice::Legacy) || self.places.is_blocking(stream);
        self.staging.queue((stream, is_blocking), staged);
        self.staging.is_full()
    }

    /// The copies through such memory that are done when what is queued on a stream now is; none if none is in flight.
    pub(crate) fn staged_so_far(&self, choice: &StreamChoice) -> Option<Covered> {
        let what = match choice {
            StreamChoice::Legacy => Finished::Blocking,
            StreamChoice::Stream(stream) => Finished::Stream(stream.id),
        };
        self.staging.has_in_flight().then(|| (what, self.staging.queued()))
    }

    /// Keeps host memory that a graph needs until the context ends: clones and launches of the graph may outlive it.
    pub(crate) fn keep_for_graphs(&mut self, block: HostBlock) {
        self.graph_blocks.push(block);
    }

    /// Keeps a graph until all work is done.
    pub(crate) fn retire(&mut self, graph: GraphId) {
        self.retired.graphs.push(graph);
    }

    /// Keeps memory until all work is done.
    pub(crate) fn retire_memory(&mut self, memory: MemoryId) {
        self.retired.memory.push(memory);
    }

    /// All that is kept so far.
    pub(crate) fn retired(&self) -> Retired {
        self.retired.clone()
    }

    /// Takes out what no work uses any more, of what was kept before the work was waited for.
    pub(crate) fn take_retired(&mut self, done: &Retired) -> Retired {
        let Retired { graphs, memory } = &mut self.retired;
        Retired {
            graphs: graphs.extract_if(.., |graph| done.graphs.contains(graph)).collect(),
            memory: memory.extract_if(.., |memory| done.memory.contains(memory)).collect(),
        }
    }

    /// Ends all that the context made below; its work is done.
    pub(crate) fn end(self) {
        for stream in self.places.streams().chain([self.legacy]).chain(self.setup) {
            let _ = self.driver.destroy(stream.into());
        }
        for event in self.spare.iter().chain(&self.orphans) {
            let _ = self.driver.destroy((*event).into());
        }
        for block in self.staging.into_blocks().chain(self.graph_blocks) {
            let _ = self.driver.destroy(block.id().into());
        }
        self.retired.end(&*self.driver);
    }
}

#[cfg(test)]
mod tests {
    use kiln_sim::{Machine, MachineConfig};

    use super::*;

    #[test]
    fn the_end_of_a_stream_that_two_threads_wait_for_is_one_event_afterwards() {
        let driver: Arc<dyn Driver> = Machine::new(MachineConfig::seeded(0)).device(0).unwrap();
        let mut order = StreamOrder::new(driver).unwrap();
        let end = order.event().unwrap();
        order.driver.submit(order.legacy, &Command::Signal(end)).unwrap();
        order.orphans.push(end);
        let (_, first) = order.everything();
        let (_, second) = order.everything();
        order.forget_orphans(&first);
        order.forget_orphans(&second);
        let events = [order.event().unwrap(), order.event().unwrap()];
        assert!(events[0] == end && events[1] != end, "{events:?}");
    }
}
