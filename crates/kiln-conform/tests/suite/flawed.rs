//! Drivers that are broken on purpose, each in one way.

use std::collections::HashSet;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kiln_driver::{
    BackgroundHealth, Clock, Command, DeviceInfo, DeviceMemory, DevicePlace, Driver, DriverExt, Error,
    EventId, EventRequest, Function, FunctionId, GraphId, GraphNode, Health, HostBlock, Image, MemoryId,
    MemoryInfo, MemoryRequest, ModuleId, Object, Occupancy, PageRequest, PagesId, Place, Progress,
    Protection, Refusal, Reservation, ReservationId, ReserveRequest, Result, SharedBytes, StreamId,
    StreamRequest, Submission, TENSOR_MAP_BYTES, TensorMapRequest, TensorMaps, Timeout, WaitTarget, Waited,
};

/// What is wrong with a driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Flaw {
    /// Nothing; the control.
    None,
    /// Waits on streams hold nothing back.
    LosesWaits,
    /// An event means its first signal for ever.
    KeepsFirstSignal,
    /// A host's wait for an event says done at once.
    EventsDoneAtOnce,
    /// Progress says that everything submitted is done.
    ProgressRunsAhead,
    /// Submissions are numbered from 0.
    NumbersFromZero,
    /// A limited wait gives up at once.
    GivesUpEarly,
    /// Copies and fills past the end are taken, and dropped.
    ForgetsBounds,
    /// Destroying or freeing what is gone succeeds.
    AcceptsStale,
    /// A handle of another device is called stale.
    ConfusesForeign,
    /// Pages are mapped one by one, until one does not fit.
    MapsHalf,
    /// Pages are mapped in reverse.
    MapsBackwards,
    /// A partial unmap takes the whole mapping out.
    UnmapsTooMuch,
    /// Pages stay writable whatever protection was asked for.
    ForgetsProtection,
    /// A reservation lands wherever there is room, whatever address was asked for.
    IgnoresAddress,
    /// Direct memory is not given back.
    LeaksMemory,
    /// More memory than there is becomes a little.
    ShrinksRequests,
    /// Host blocks hold what was there before.
    DirtyHostBlocks,
    /// The same memory can be registered twice.
    RegistersTwice,
    /// Fills write one element too few.
    FillsTooFew,
    /// Grids and blocks outside of the limits are taken, and dropped.
    ForgetsLimits,
    /// Edges of a graph are lost.
    LosesEdges,
    /// Updates of a graph are taken, and dropped.
    DropsUpdates,
    /// Another kind of command replaces a node.
    UpdatesAnyKind,
    /// Kernels that do not exist are found.
    FindsAnyKernel,
    /// No time passes.
    TimeStandsStill,
    /// A lost device says that it is healthy.
    ClaimsHealth,
    /// A late failure does not say where it comes from.
    LosesSites,
    /// After a loss some calls go on as if nothing had happened.
    ForgetsLoss,
    /// A copy of no bytes from another device is refused, and others are not.
    DeniesPeers,
    /// A place on another device is taken for the start of its block.
    ForgetsPeerOffsets,
    /// Copies to another device are taken, and dropped.
    DropsCopiesToPeers,
    /// Imported pages are fresh ones.
    ImportsFreshPages,
    /// A sum of ranks is their largest value.
    ConfusesReductions,
    /// Collectives are taken, and dropped.
    DropsCollectives,
    /// Aborts are taken, and dropped.
    DropsAborts,
    /// A rank that was aborted takes collectives.
    TakesAfterAbort,
}

/// A driver with a flaw.
pub(crate) struct Flawed {
    inner: Arc<dyn Driver>,
    flaw: Flaw,
    /// An event that is never signalled.
    never: EventId,
    signalled: Mutex<HashSet<EventId>>,
    mapped: Mutex<Vec<(ReservationId, u64, u64)>>,
    page_bytes: Mutex<Vec<(PagesId, u64)>>,
    communicators: Mutex<HashSet<ModuleId>>,
    /// Functions of communicators, and whether they abort.
    collectives: Mutex<Vec<(FunctionId, bool)>>,
}

impl Flawed {
    pub(crate) fn new(inner: Arc<dyn Driver>, flaw: Flaw) -> Result<Self> {
        let never = inner.create_event(EventRequest::Plain)?;
        Ok(Self {
            inner,
            flaw,
            never,
            signalled: Mutex::default(),
            mapped: Mutex::default(),
            page_bytes: Mutex::default(),
            communicators: Mutex::default(),
            collectives: Mutex::default(),
        })
    }

    /// Gives back what the driver made for itself.
    pub(crate) fn finish(&self) -> Result<()> {
        self.inner.destroy(self.never.into())
    }

    fn is(&self, flaw: Flaw) -> bool {
        self.flaw == flaw
    }

    /// Succeeds where the right answer is that a handle is stale.
    fn forgive_stale(&self, answer: Result<()>) -> Result<()> {
        match &answer {
            Err(error)
                if self.is(Flaw::AcceptsStale) && matches!(error.refusal(), Some(Refusal::Stale { .. })) =>
            {
                Ok(())
            }
            _ => self.confuse(answer),
        }
    }

    /// Calls a foreign handle stale.
    fn confuse<T>(&self, answer: Result<T>) -> Result<T> {
        answer.map_err(|error| match error.refusal() {
            Some(Refusal::Foreign { handle }) if self.is(Flaw::ConfusesForeign) => {
                Error::refused(error.call(), Refusal::Stale { handle: handle.clone() })
            }
            _ => error,
        })
    }

    /// Loses the site of a late failure.
    fn strip<T>(&self, answer: Result<T>) -> Result<T> {
        answer.map_err(|error| match error.fault() {
            Some(fault) if self.is(Flaw::LosesSites) => Error::lost(error.call(), fault.clone()),
            _ => error,
        })
    }

    /// Takes a command that should be refused, and does nothing instead.
    fn swallow(&self, stream: StreamId, answer: Result<Submission>) -> Result<Submission> {
        let nothing = || self.inner.submit(stream, &Command::Wait(self.never));
        match &answer {
            Err(error) if self.is(Flaw::ForgetsBounds) => match error.refusal() {
                Some(Refusal::OutOfRange { .. }) => nothing(),
                _ => answer,
            },
            Err(error) if self.is(Flaw::ForgetsLimits) => match error.refusal() {
                Some(Refusal::Invalid { .. } | Refusal::Limit { .. })
                | Some(Refusal::CooperativeResidencyExceeded { .. }) => nothing(),
                _ => answer,
            },
            _ => answer,
        }
    }

    /// Whether a command calls a function of a communicator, and whether that aborts it.
    fn collective(&self, command: &Command<'_>) -> Option<bool> {
        let Command::Launch(launch) = command else { return None };
        let known = self.collectives.lock().unwrap();
        known.iter().find(|(id, _)| *id == launch.function).map(|(_, aborts)| *aborts)
    }

    /// Whether a command is taken, and dropped.
    fn drops(&self, command: &Command<'_>) -> bool {
        match self.flaw {
            Flaw::DropsCollectives => self.collective(command) == Some(false),
            Flaw::DropsAborts => self.collective(command) == Some(true),
            Flaw::DropsCopiesToPeers => matches!(command, Command::Copy { to: Place::Peer(_), .. }),
            _ => false,
        }
    }

    fn mapping_at(&self, reservation: ReservationId, offset: u64) -> Option<(u64, u64)> {
        let mapped = self.mapped.lock().unwrap();
        let found = mapped
            .iter()
            .find(|(id, start, bytes)| *id == reservation && (*start..start + bytes).contains(&offset));
        found.map(|(_, start, bytes)| (*start, *bytes))
    }

    fn bytes_of(&self, pages: PagesId) -> u64 {
        let sizes = self.page_bytes.lock().unwrap();
        sizes.iter().find(|(id, _)| *id == pages).map_or(0, |(_, bytes)| *bytes)
    }

    fn map_as_told(
        &self,
        into: ReservationId,
        offset: u64,
        pages: &[PagesId],
        protection: Protection,
    ) -> Result<()> {
        self.confuse(self.inner.map(into, offset, pages, protection))?;
        let mut at = offset;
        for pages in pages {
            self.mapped.lock().unwrap().push((into, at, self.bytes_of(*pages)));
            at += self.bytes_of(*pages);
        }
        Ok(())
    }
}

impl BackgroundHealth for Flawed {}

impl TensorMaps for Flawed {
    fn tensor_map(&self, request: &TensorMapRequest<'_>) -> Result<[u8; TENSOR_MAP_BYTES]> {
        self.inner.tensor_map(request)
    }
}

impl Driver for Flawed {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn memory_info(&self) -> Result<MemoryInfo> {
        self.inner.memory_info()
    }

    fn health(&self) -> Health {
        match self.inner.health() {
            Health::Lost(_) if self.is(Flaw::ClaimsHealth) => Health::Healthy,
            Health::Lost(error) => match self.strip::<()>(Err(error)) {
                Err(error) => Health::Lost(error),
                Ok(()) => Health::Healthy,
            },
            health => health,
        }
    }

    fn clock(&self) -> &dyn Clock {
        self.inner.clock()
    }

    fn reserve(&self, request: ReserveRequest) -> Result<Reservation> {
        let anywhere = ReserveRequest { at: None, ..request };
        self.inner.reserve(if self.is(Flaw::IgnoresAddress) { anywhere } else { request })
    }

    fn create_pages(&self, request: PageRequest) -> Result<PagesId> {
        let pages = self.inner.create_pages(request)?;
        self.page_bytes.lock().unwrap().push((pages, request.bytes));
        Ok(pages)
    }

    fn map(&self, into: ReservationId, offset: u64, pages: &[PagesId], protection: Protection) -> Result<()> {
        match self.flaw {
            Flaw::MapsHalf => {
                let mut at = offset;
                for pages in pages {
                    self.map_as_told(into, at, &[*pages], protection)?;
                    at += self.bytes_of(*pages);
                }
                Ok(())
            }
            Flaw::MapsBackwards => {
                let backwards: Vec<_> = pages.iter().rev().copied().collect();
                self.map_as_told(into, offset, &backwards, protection)
            }
            _ => self.map_as_told(into, offset, pages, protection),
        }
    }

    fn unmap(&self, from: ReservationId, offset: u64, bytes: u64) -> Result<()> {
        let whole = self.mapping_at(from, offset).filter(|_| self.is(Flaw::UnmapsTooMuch));
        let (offset, bytes) = match whole {
            Some((start, whole)) if bytes < whole => (start, whole),
            _ => (offset, bytes),
        };
        self.confuse(self.inner.unmap(from, offset, bytes))?;
        let inside = |start: &u64| (offset..offset + bytes).contains(start);
        self.mapped.lock().unwrap().retain(|(id, start, _)| !(*id == from && inside(start)));
        Ok(())
    }

    fn protect(
        &self,
        reservation: ReservationId,
        offset: u64,
        bytes: u64,
        protection: Protection,
    ) -> Result<()> {
        let lenient = Protection::ReadWrite;
        let protection = if self.is(Flaw::ForgetsProtection) { lenient } else { protection };
        self.confuse(self.inner.protect(reservation, offset, bytes, protection))
    }

    fn export_pages(&self, pages: PagesId) -> Result<OwnedFd> {
        self.confuse(self.inner.export_pages(pages))
    }

    fn import_pages(&self, descriptor: BorrowedFd<'_>, bytes: u64) -> Result<PagesId> {
        if self.is(Flaw::ImportsFreshPages) {
            return self.create_pages(PageRequest { bytes, exportable: false });
        }
        let pages = self.inner.import_pages(descriptor, bytes)?;
        self.page_bytes.lock().unwrap().push((pages, bytes));
        Ok(pages)
    }

    fn allocate(&self, request: MemoryRequest) -> Result<DeviceMemory> {
        match (self.confuse(self.inner.allocate(request)), request) {
            (Err(error), MemoryRequest::Direct { .. })
                if error.is_oom() && self.is(Flaw::ShrinksRequests) =>
            {
                self.inner.allocate(MemoryRequest::Direct { bytes: 4096 })
            }
            (Err(error), _) if error.is_sticky() && self.is(Flaw::ForgetsLoss) => {
                Err(Error::out_of_memory("allocate", 1, None))
            }
            (answer, _) => answer,
        }
    }

    fn free(&self, memory: MemoryId, stream: Option<StreamId>) -> Result<()> {
        if self.is(Flaw::LeaksMemory) && stream.is_none() {
            return Ok(());
        }
        self.forgive_stale(self.inner.free(memory, stream))
    }

    fn trim_pool(&self, keep_bytes: u64) -> Result<()> {
        self.inner.trim_pool(keep_bytes)
    }

    fn allocate_host(&self, bytes: u64) -> Result<HostBlock> {
        let block = self.inner.allocate_host(bytes)?;
        if self.is(Flaw::DirtyHostBlocks) {
            assert!(block.write(0, &[0xcc]));
        }
        Ok(block)
    }

    fn register_host(&self, bytes: Arc<SharedBytes>) -> Result<HostBlock> {
        let len = bytes.len();
        match self.inner.register_host(bytes) {
            Err(error) if self.is(Flaw::RegistersTwice) && error.is_retryable() => {
                self.inner.register_host(Arc::new(SharedBytes::zeroed(len)))
            }
            answer => answer,
        }
    }

    fn create_stream(&self, request: StreamRequest) -> Result<StreamId> {
        self.inner.create_stream(request)
    }

    fn create_event(&self, request: EventRequest) -> Result<EventId> {
        self.inner.create_event(request)
    }

    fn wait(&self, target: WaitTarget, timeout: Timeout) -> Result<Waited> {
        match (self.flaw, target, timeout) {
            (Flaw::EventsDoneAtOnce, WaitTarget::Event(_), _) => {
                self.inner.wait(target, Timeout::Poll).map(|_| Waited::Done)
            }
            (Flaw::GivesUpEarly, _, Timeout::After(limit)) if limit > Duration::ZERO => {
                self.inner.wait(target, Timeout::Poll)
            }
            _ => self.confuse(self.strip(self.inner.wait(target, timeout))),
        }
    }

    fn elapsed(&self, from: EventId, to: EventId) -> Result<Duration> {
        let time = self.confuse(self.inner.elapsed(from, to))?;
        Ok(if self.is(Flaw::TimeStandsStill) { Duration::ZERO } else { time })
    }

    fn load(&self, image: &Image<'_>) -> Result<ModuleId> {
        let module = self.inner.load(image)?;
        if matches!(image, Image::Communicator(_)) {
            self.communicators.lock().unwrap().insert(module);
        }
        Ok(module)
    }

    fn function(&self, module: ModuleId, name: &str) -> Result<Function> {
        let other = name.replace("reduction=sum", "reduction=max");
        let found = if self.is(Flaw::ConfusesReductions) { &other } else { name };
        let answer = self.confuse(self.inner.function(module, found));
        if let Ok(function) = &answer
            && self.communicators.lock().unwrap().contains(&module)
        {
            self.collectives.lock().unwrap().push((function.id, name == "abort"));
        }
        match &answer {
            Err(error)
                if self.is(Flaw::FindsAnyKernel)
                    && (matches!(error.refusal(), Some(Refusal::NotFound { .. }))
                        || error.is_refused() && self.communicators.lock().unwrap().contains(&module)) =>
            {
                self.inner.function(module, "spin").or_else(|_| self.inner.function(module, "barrier"))
            }
            _ => answer,
        }
    }

    fn global(&self, module: ModuleId, name: &str) -> Result<DeviceMemory> {
        self.confuse(self.inner.global(module, name))
    }

    fn occupancy(&self, function: FunctionId, threads: u32, shared: u32) -> Result<Occupancy> {
        self.confuse(self.inner.occupancy(function, threads, shared))
    }

    fn submit(&self, stream: StreamId, command: &Command<'_>) -> Result<Submission> {
        let changed = match (self.flaw, *command) {
            (Flaw::LosesWaits, Command::Wait(event)) if self.inner.is_done(event).is_ok() => {
                Command::Wait(self.never)
            }
            (Flaw::KeepsFirstSignal, Command::Signal(event)) => {
                let first = self.signalled.lock().unwrap().insert(event);
                Command::Signal(if first { event } else { self.inner.create_event(EventRequest::Plain)? })
            }
            (_, command) if self.drops(&command) => Command::Wait(self.never),
            (Flaw::DeniesPeers, Command::Copy { from: Place::Peer(_), bytes: 0, .. }) => {
                return Err(Error::unsupported("submit", "a copy of no bytes", "it is flawed"));
            }
            (Flaw::ForgetsPeerOffsets, Command::Copy { from: Place::Peer(from), to, bytes }) => {
                let from = Place::Peer(DevicePlace { offset: 0, ..from });
                Command::Copy { from, to, bytes }
            }
            (Flaw::FillsTooFew, Command::Fill { to, pattern, count }) if count > 1 => {
                Command::Fill { to, pattern, count: count - 1 }
            }
            (_, command) => command,
        };
        let answer = self.confuse(self.strip(self.inner.submit(stream, &changed)));
        let answer = match (&answer, self.flaw, command) {
            (Err(error), Flaw::TakesAfterAbort, _)
                if error.is_refused() && self.collective(command).is_some() =>
            {
                self.inner.submit(stream, &Command::Wait(self.never))
            }
            (Err(error), Flaw::ForgetsLoss, Command::Copy { from: Place::Peer(_), .. })
                if error.is_sticky() =>
            {
                Ok(Submission(1))
            }
            _ => answer,
        };
        let number = self.swallow(stream, answer)?;
        Ok(if self.is(Flaw::NumbersFromZero) { Submission(number.0 - 1) } else { number })
    }

    fn progress(&self, stream: StreamId) -> Result<Progress> {
        let progress = self.confuse(self.strip(self.inner.progress(stream)))?;
        let ahead = Progress { completed: progress.submitted, ..progress };
        Ok(if self.is(Flaw::ProgressRunsAhead) { ahead } else { progress })
    }

    fn build_graph(&self, nodes: &[GraphNode<'_>]) -> Result<GraphId> {
        kiln_driver::graph::check_nodes(nodes)?;
        let loose: Vec<_> = nodes.iter().map(|node| GraphNode { after: &[], ..*node }).collect();
        self.confuse(self.inner.build_graph(if self.is(Flaw::LosesEdges) { &loose } else { nodes }))
    }

    fn update_graph(&self, graph: GraphId, node: u32, command: &Command<'_>) -> Result<()> {
        if self.is(Flaw::DropsUpdates) {
            return Ok(());
        }
        match self.confuse(self.inner.update_graph(graph, node, command)) {
            Err(error) if self.is(Flaw::UpdatesAnyKind) && error.is_refused() => Ok(()),
            answer => answer,
        }
    }

    fn destroy(&self, object: Object) -> Result<()> {
        self.forgive_stale(self.inner.destroy(object))
    }

    fn native(&self, object: Object) -> Result<u64> {
        self.confuse(self.inner.native(object))
    }
}
