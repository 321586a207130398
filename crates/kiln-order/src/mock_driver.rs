//! A mock driver for tests: it only queues signals and waits, runs nothing, and reports missing dependencies.
//!
//! It runs nothing. It keeps for every stream what a device would have to have done before the stream's next command, by signals and waits
//! alone, and holds each piece of work against all that touched the same block before. So it knows whether an edge is missing and knows
//! nothing of stamps; and it is small enough for an interpreter, which the simulated device is not.

use kiln_driver::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use kiln_driver::*;

/// The driver.
pub(crate) struct QueueDriver {
    streams: Slots<kind::Stream, ()>,
    events: Slots<kind::Event, ()>,
    state: Mutex<State>,
    clock: WallClock,
    /// Whether every call is answered with an error.
    pub(crate) refuses: AtomicBool,
}

/// The latest submission of every stream that comes before, by slot.
#[derive(Clone, Default, Debug)]
struct Before(Vec<u64>);

#[derive(Default)]
struct State {
    streams: Vec<Queue>,
    /// What came before each event as it was signalled last.
    signalled: Vec<Before>,
    /// What the host has waited for.
    host: Before,
    touched: Vec<Touch>,
    races: Vec<String>,
    waits: usize,
    signals: usize,
}

#[derive(Clone, Default)]
struct Queue {
    submitted: u64,
    before: Before,
}

#[derive(Debug)]
struct Touch {
    block: usize,
    stream: usize,
    number: u64,
    writes: bool,
}

impl Before {
    fn covers(&self, stream: usize, number: u64) -> bool {
        self.0.get(stream).is_some_and(|known| *known >= number)
    }

    fn learn(&mut self, stream: usize, number: u64) {
        self.0.resize(self.0.len().max(stream + 1), 0);
        self.0[stream] = self.0[stream].max(number);
    }

    fn join(&mut self, other: &Self) {
        other.0.iter().enumerate().for_each(|(stream, number)| self.learn(stream, *number));
    }
}

impl QueueDriver {
    pub(crate) fn new() -> Arc<Self> {
        let key = DeviceKey::fresh();
        let (streams, events) = (Slots::new(key), Slots::new(key));
        let (state, clock) = (Mutex::default(), WallClock::new());
        Arc::new(Self { streams, events, state, clock, refuses: AtomicBool::new(false) })
    }

    /// A stream.
    pub(crate) fn stream(&self) -> StreamId {
        self.streams.insert(()).unwrap()
    }

    /// Queues work that touches blocks, each named by a number.
    pub(crate) fn touch(&self, stream: StreamId, blocks: &[(usize, Access)]) -> Result<()> {
        let _alive = self.answer(self.streams.pin(stream)?)?;
        let mut state = self.state();
        let (number, before) = state.queue(stream);
        let stream = stream.slot() as usize;
        for (block, access) in blocks {
            let touch = Touch { block: *block, stream, number, writes: access.writes() };
            let races = |known: &&Touch| {
                known.block == *block
                    && (known.writes || touch.writes)
                    && !before.covers(known.stream, known.number)
            };
            let found: Vec<_> =
                state.touched.iter().filter(races).map(|known| format!("{known:?} and {touch:?}")).collect();
            state.races.extend(found);
            state.touched.push(touch);
        }
        Ok(())
    }

    /// Pairs of accesses to one block, one of them writing, without an order between them.
    pub(crate) fn races(&self) -> Vec<String> {
        self.state().races.clone()
    }

    /// Waits and signals that were queued.
    pub(crate) fn edges(&self) -> (usize, usize) {
        let state = self.state();
        (state.waits, state.signals)
    }

    /// Events that were made and not destroyed.
    pub(crate) fn events(&self) -> usize {
        self.events.len()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn answer<T>(&self, value: T) -> Result<T> {
        if self.refuses.load(Ordering::Relaxed) {
            return Err(Error::invalid("submit", "told to refuse", "nothing"));
        }
        Ok(value)
    }
}

impl State {
    /// One more submission to a stream: its number, and what comes before it.
    fn queue(&mut self, stream: StreamId) -> (u64, Before) {
        let slot = stream.slot() as usize;
        self.streams.resize(self.streams.len().max(slot + 1), Queue::default());
        let queue = &mut self.streams[slot];
        queue.before.join(&self.host);
        let before = queue.before.clone();
        queue.submitted += 1;
        queue.before.learn(slot, queue.submitted);
        (queue.submitted, before)
    }

    fn signalled(&mut self, event: EventId) -> &mut Before {
        let slot = event.slot() as usize;
        self.signalled.resize(self.signalled.len().max(slot + 1), Before::default());
        &mut self.signalled[slot]
    }
}

fn absent<T>() -> Result<T> {
    Err(Error::unsupported("call", "anything but streams and events", "this driver is queues alone"))
}

impl BackgroundHealth for QueueDriver {}

impl TensorMaps for QueueDriver {
    fn tensor_map(&self, _: &TensorMapRequest<'_>) -> Result<[u8; TENSOR_MAP_BYTES]> {
        absent()
    }
}

impl Driver for QueueDriver {
    fn create_stream(&self, _: StreamRequest) -> Result<StreamId> {
        self.answer(())?;
        self.streams.insert(())
    }

    fn create_event(&self, _: EventRequest) -> Result<EventId> {
        self.answer(())?;
        self.events.insert(())
    }

    fn submit(&self, stream: StreamId, command: &Command<'_>) -> Result<Submission> {
        let _alive = self.answer(self.streams.pin(stream)?)?;
        let mut state = self.state();
        let (number, before) = state.queue(stream);
        match command {
            Command::Signal(event) => {
                state.signals += 1;
                *state.signalled(*event) = before;
            }
            Command::Wait(event) => {
                state.waits += 1;
                let known = state.signalled(*event).clone();
                state.streams[stream.slot() as usize].before.join(&known);
            }
            _ => return absent(),
        }
        Ok(Submission(number))
    }

    /// Nothing runs by itself; a wait runs it.
    fn wait(&self, target: WaitTarget, timeout: Timeout) -> Result<Waited> {
        self.answer(())?;
        let event = match target {
            WaitTarget::Event(event) => event,
            // Nothing runs here, so a stream is done as soon as it is waited for.
            WaitTarget::Stream(_) | WaitTarget::Findings => return Ok(Waited::Done),
        };
        if timeout == Timeout::Poll {
            return Ok(Waited::TimedOut);
        }
        let mut state = self.state();
        let known = state.signalled(event).clone();
        state.host.join(&known);
        Ok(Waited::Done)
    }

    fn destroy(&self, object: Object) -> Result<()> {
        match object {
            Object::Event(event) => self.events.remove(event).map(|_| ()),
            Object::Stream(stream) => self.streams.remove(stream).map(|_| ()),
            _ => absent(),
        }
    }

    fn health(&self) -> Health {
        Health::Healthy
    }

    fn clock(&self) -> &dyn Clock {
        &self.clock
    }

    fn info(&self) -> &DeviceInfo {
        panic!("the order asks for no limit of the device")
    }

    fn memory_info(&self) -> Result<MemoryInfo> {
        absent()
    }

    fn reserve(&self, _: ReserveRequest) -> Result<Reservation> {
        absent()
    }

    fn create_pages(&self, _: PageRequest) -> Result<PagesId> {
        absent()
    }

    fn map(&self, _: ReservationId, _: u64, _: &[PagesId], _: Protection) -> Result<()> {
        absent()
    }

    fn unmap(&self, _: ReservationId, _: u64, _: u64) -> Result<()> {
        absent()
    }

    fn protect(&self, _: ReservationId, _: u64, _: u64, _: Protection) -> Result<()> {
        absent()
    }

    fn export_pages(&self, _: PagesId) -> Result<OwnedFd> {
        absent()
    }

    fn import_pages(&self, _: BorrowedFd<'_>, _: u64) -> Result<PagesId> {
        absent()
    }

    fn allocate(&self, _: MemoryRequest) -> Result<DeviceMemory> {
        absent()
    }

    fn free(&self, _: MemoryId, _: Option<StreamId>) -> Result<()> {
        absent()
    }

    fn trim_pool(&self, _: u64) -> Result<()> {
        absent()
    }

    fn allocate_host(&self, _: u64) -> Result<HostBlock> {
        absent()
    }

    fn register_host(&self, _: Arc<SharedBytes>) -> Result<HostBlock> {
        absent()
    }

    fn elapsed(&self, _: EventId, _: EventId) -> Result<Duration> {
        absent()
    }

    fn load(&self, _: &Image<'_>) -> Result<ModuleId> {
        absent()
    }

    fn function(&self, _: ModuleId, _: &str) -> Result<Function> {
        absent()
    }

    fn global(&self, _: ModuleId, _: &str) -> Result<DeviceMemory> {
        absent()
    }

    fn occupancy(&self, _: FunctionId, _: u32, _: u32) -> Result<Occupancy> {
        absent()
    }

    fn progress(&self, _: StreamId) -> Result<Progress> {
        absent()
    }

    fn build_graph(&self, _: &[GraphNode<'_>]) -> Result<GraphId> {
        absent()
    }

    fn update_graph(&self, _: GraphId, _: u32, _: &Command<'_>) -> Result<()> {
        absent()
    }

    fn native(&self, _: Object) -> Result<u64> {
        absent()
    }
}
