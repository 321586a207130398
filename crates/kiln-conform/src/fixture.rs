//! The fixture of a test: a fresh driver, short forms of the usual calls, and cleanup.
//!
//! Everything a law makes through the rig is given back at the end, in reverse, after its streams are done. A law is
//! thus a correct program, and the checks of a layer or a simulator must find nothing in it.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use kiln_driver::{
    Command, DeviceMemory, DevicePlace, Dim3, Driver, DriverExt, EventId, EventRequest, Function, FunctionId,
    GraphId, GraphNode, HostBlock, Image, LaunchCommand, MemoryId, MemoryRequest, ModuleId, Object,
    PageRequest, PagesId, Place, Protection, Reservation, ReservationId, ReserveRequest, Result, StreamId,
    StreamRequest, Submission, Timeout, Vouched, WaitTarget,
};

use crate::driver_under_test::Subject;
use crate::expect::inapplicable;
use crate::kernels::{Arguments, Kernels};
use crate::law::{Stop, fail};

/// A fresh driver with everything a law needs.
pub struct Rig<'a> {
    /// The driver under test.
    pub(crate) driver: Arc<dyn Driver>,
    /// A driver of another device, where the subject has one.
    pub(crate) peer: Option<Arc<dyn Driver>>,
    subject: &'a Subject,
    round: u64,
    side: OnceLock<StreamId>,
    module: OnceLock<ModuleId>,
    undo: Mutex<Vec<Undo>>,
}

/// How to give something back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Undo {
    Free(MemoryId, Option<StreamId>),
    Unmap(ReservationId, u64, u64),
    Destroy(Object),
}

impl<'a> Rig<'a> {
    pub(crate) fn new(
        subject: &'a Subject,
        round: u64,
        driver: Arc<dyn Driver>,
        peer: Option<Arc<dyn Driver>>,
    ) -> Self {
        Self {
            driver,
            peer,
            subject,
            round,
            side: OnceLock::new(),
            module: OnceLock::new(),
            undo: Mutex::default(),
        }
    }

    /// A second fresh driver, whose handles mean nothing to the first.
    pub(crate) fn another(&self) -> std::result::Result<Rig<'a>, Stop> {
        let opened = (self.subject.open)(self.round).map_err(|why| fail("a second driver to open", why))?;
        Ok(Rig::new(self.subject, self.round, opened.driver, None))
    }

    /// The other device with everything a law needs there. The law finishes it.
    pub(crate) fn beside(&self) -> std::result::Result<Rig<'a>, Stop> {
        match &self.peer {
            Some(peer) => Ok(Rig::new(self.subject, self.round, peer.clone(), None)),
            None => inapplicable("there is no second device"),
        }
    }

    pub(crate) fn kernels(&self) -> &Kernels {
        &self.subject.kernels
    }

    /// Whether a spinning kernel takes the host's time too.
    pub(crate) fn in_real_time(&self) -> bool {
        self.subject.real_time
    }

    // Making things.

    pub(crate) fn stream(&self) -> Result<StreamId> {
        let stream = self.driver.create_stream(StreamRequest::New { priority: 0 })?;
        self.note(Undo::Destroy(stream.into()));
        Ok(stream)
    }

    pub(crate) fn event(&self) -> Result<EventId> {
        self.event_of(EventRequest::Plain)
    }

    pub(crate) fn event_of(&self, request: EventRequest) -> Result<EventId> {
        let event = self.driver.create_event(request)?;
        self.note(Undo::Destroy(event.into()));
        Ok(event)
    }

    pub(crate) fn memory(&self, bytes: u64) -> Result<DeviceMemory> {
        let memory = self.driver.allocate(MemoryRequest::Direct { bytes })?;
        self.note(Undo::Free(memory.id, None));
        Ok(memory)
    }

    pub(crate) fn pool_memory(&self, bytes: u64, stream: StreamId) -> Result<DeviceMemory> {
        let memory = self.driver.allocate(MemoryRequest::Pool { bytes, stream })?;
        self.note(Undo::Free(memory.id, Some(stream)));
        Ok(memory)
    }

    /// Memory that holds these bytes.
    pub(crate) fn memory_with(&self, bytes: &[u8]) -> std::result::Result<DeviceMemory, Stop> {
        let memory = self.memory(bytes.len() as u64)?;
        self.put(memory.id, bytes)?;
        Ok(memory)
    }

    /// Memory that holds so many zero words.
    pub(crate) fn words(&self, count: u64) -> std::result::Result<DeviceMemory, Stop> {
        self.memory_with(&vec![0; count as usize * 4])
    }

    pub(crate) fn host(&self, bytes: u64) -> Result<HostBlock> {
        let block = self.driver.allocate_host(bytes)?;
        self.note(Undo::Destroy(block.id().into()));
        Ok(block)
    }

    pub(crate) fn host_with(&self, bytes: &[u8]) -> std::result::Result<HostBlock, Stop> {
        let block = self.host(bytes.len() as u64)?;
        write_host(&block, bytes)?;
        Ok(block)
    }

    /// The size of one page.
    pub(crate) fn granule(&self) -> u64 {
        self.driver.info().limits.page_granularity_bytes
    }

    pub(crate) fn reservation(&self, granules: u64) -> Result<Reservation> {
        let request = ReserveRequest { bytes: granules * self.granule(), at: None };
        let reservation = self.driver.reserve(request)?;
        self.note(Undo::Destroy(reservation.id.into()));
        Ok(reservation)
    }

    pub(crate) fn pages(&self, granules: u64) -> Result<PagesId> {
        self.pages_of(PageRequest { bytes: granules * self.granule(), exportable: false })
    }

    pub(crate) fn pages_of(&self, request: PageRequest) -> Result<PagesId> {
        let pages = self.driver.create_pages(request)?;
        self.note(Undo::Destroy(pages.into()));
        Ok(pages)
    }

    /// Maps one piece of so many granules, for anything.
    pub(crate) fn map(
        &self,
        into: ReservationId,
        at_granule: u64,
        pages: PagesId,
        granules: u64,
    ) -> Result<()> {
        let (offset, bytes) = (at_granule * self.granule(), granules * self.granule());
        self.driver.map(into, offset, &[pages], Protection::ReadWrite)?;
        self.note(Undo::Unmap(into, offset, bytes));
        Ok(())
    }

    pub(crate) fn unmap(&self, from: ReservationId, at_granule: u64, granules: u64) -> Result<()> {
        let (offset, bytes) = (at_granule * self.granule(), granules * self.granule());
        self.driver.unmap(from, offset, bytes)?;
        self.forget(Undo::Unmap(from, offset, bytes));
        Ok(())
    }

    pub(crate) fn graph(&self, nodes: &[GraphNode<'_>]) -> Result<GraphId> {
        let graph = self.driver.build_graph(nodes)?;
        self.note(Undo::Destroy(graph.into()));
        Ok(graph)
    }

    pub(crate) fn load(&self) -> Result<ModuleId> {
        self.load_image(&self.kernels().image())
    }

    pub(crate) fn load_image(&self, image: &Image<'_>) -> Result<ModuleId> {
        let module = self.driver.load(image)?;
        self.note(Undo::Destroy(module.into()));
        Ok(module)
    }

    // Giving things back, or leaving that to the law.

    pub(crate) fn free(&self, memory: MemoryId, stream: Option<StreamId>) -> Result<()> {
        self.driver.free(memory, stream)?;
        let mut undo = self.undo();
        undo.retain(|undo| !matches!(undo, Undo::Free(id, _) if *id == memory));
        Ok(())
    }

    pub(crate) fn destroy(&self, object: impl Into<Object>) -> Result<()> {
        let object = object.into();
        self.driver.destroy(object)?;
        self.forget(Undo::Destroy(object));
        Ok(())
    }

    /// Leaves an object to be given back at the end, although it was not made through the rig.
    pub(crate) fn adopt(&self, object: impl Into<Object>) {
        self.note(Undo::Destroy(object.into()));
    }

    /// Leaves memory to be freed at the end.
    pub(crate) fn adopt_memory(&self, memory: MemoryId, stream: Option<StreamId>) {
        self.note(Undo::Free(memory, stream));
    }

    /// Leaves a mapping to be taken out at the end.
    pub(crate) fn adopt_mapping(&self, reservation: ReservationId, offset: u64, bytes: u64) {
        self.note(Undo::Unmap(reservation, offset, bytes));
    }

    // Work.

    /// A kernel of the laws' own module.
    pub(crate) fn kernel(&self, name: &str) -> Result<Function> {
        let module = match self.module.get() {
            Some(module) => *module,
            None => {
                let module = self.load()?;
                *self.module.get_or_init(|| module)
            }
        };
        self.driver.function(module, name)
    }

    pub(crate) fn launch(
        &self,
        stream: StreamId,
        kernel: FunctionId,
        grid: impl Into<Dim3>,
        block: impl Into<Dim3>,
        arguments: &Arguments,
    ) -> Result<Submission> {
        self.driver.submit(stream, &Command::Launch(plain_launch(kernel, grid, block, arguments)))
    }

    /// Adds one to the first words of a block.
    pub(crate) fn increment(
        &self,
        stream: StreamId,
        memory: &DeviceMemory,
        words: u32,
    ) -> Result<Submission> {
        let kernel = self.kernel("increment")?;
        let arguments = Arguments::new().address(memory.address).u32(words);
        self.launch(stream, kernel.id, words.div_ceil(64), 64, &arguments)
    }

    /// Writes one word.
    pub(crate) fn store(&self, stream: StreamId, memory: &DeviceMemory, value: u32) -> Result<Submission> {
        let kernel = self.kernel("store_value")?;
        let arguments = Arguments::new().address(memory.address).u32(value);
        self.launch(stream, kernel.id, 1, 1, &arguments)
    }

    /// Keeps a stream busy, so that what is queued behind has not run yet when the host goes on.
    pub(crate) fn busy(&self, stream: StreamId) -> Result<Submission> {
        self.busy_for(stream, 1)
    }

    /// Keeps a stream busy for a multiple of that time.
    pub(crate) fn busy_for(&self, stream: StreamId, times: u64) -> Result<Submission> {
        let kernel = self.kernel("spin")?;
        let clocks = self.subject.spin_clocks.saturating_mul(times);
        self.launch(stream, kernel.id, 1, 1, &Arguments::new().u64(clocks))
    }

    pub(crate) fn copy(
        &self,
        stream: StreamId,
        from: impl Into<DevicePlace>,
        to: impl Into<DevicePlace>,
        bytes: u64,
    ) -> Result<Submission> {
        let (from, to) = (Place::Device(from.into()), Place::Device(to.into()));
        self.driver.submit(stream, &Command::Copy { from, to, bytes })
    }

    /// Copies bytes to the device and waits, on a stream of the rig's own.
    pub(crate) fn put(&self, to: impl Into<DevicePlace>, bytes: &[u8]) -> std::result::Result<(), Stop> {
        let block = self.driver.allocate_host(bytes.len() as u64)?;
        write_host(&block, bytes)?;
        let side = self.side()?;
        self.driver.upload(side, &block, to.into(), bytes.len() as u64)?;
        self.driver.synchronize(side)?;
        Ok(self.driver.destroy(block.id().into())?)
    }

    /// Copies bytes from the device and waits, on a stream of the rig's own.
    pub(crate) fn get(&self, from: impl Into<DevicePlace>, bytes: u64) -> std::result::Result<Vec<u8>, Stop> {
        let block = self.driver.allocate_host(bytes)?;
        let side = self.side()?;
        self.driver.download(side, from.into(), &block, bytes)?;
        self.driver.synchronize(side)?;
        let found = read_host(&block)?;
        self.driver.destroy(block.id().into())?;
        Ok(found)
    }

    /// The words of a block.
    pub(crate) fn get_words(&self, memory: &DeviceMemory, count: u64) -> std::result::Result<Vec<u32>, Stop> {
        Ok(as_words(&self.get(memory.id, count * 4)?))
    }

    /// Gives back everything that was made through the rig.
    pub(crate) fn finish(&self) -> std::result::Result<(), Stop> {
        let undo = std::mem::take(&mut *self.undo());
        for step in &undo {
            if let Undo::Destroy(Object::Stream(stream)) = step {
                let _ = self.driver.wait(WaitTarget::Stream(*stream), Timeout::Never)?;
            }
        }
        for step in undo.into_iter().rev() {
            let given_back = match step {
                Undo::Free(memory, stream) => self.driver.free(memory, stream),
                Undo::Unmap(reservation, offset, bytes) => self.driver.unmap(reservation, offset, bytes),
                Undo::Destroy(object) => self.driver.destroy(object),
            };
            given_back.map_err(|error| fail(format!("to give back what the law made ({step:?})"), error))?;
        }
        Ok(())
    }

    fn side(&self) -> Result<StreamId> {
        if let Some(stream) = self.side.get() {
            return Ok(*stream);
        }
        let stream = self.stream()?;
        Ok(*self.side.get_or_init(|| stream))
    }

    fn note(&self, undo: Undo) {
        self.undo().push(undo);
    }

    fn forget(&self, undo: Undo) {
        self.undo().retain(|noted| *noted != undo);
    }

    fn undo(&self) -> std::sync::MutexGuard<'_, Vec<Undo>> {
        self.undo.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A launch of one of the laws' kernels, without extras.
pub(crate) fn plain_launch<'b>(
    function: FunctionId,
    grid: impl Into<Dim3>,
    block: impl Into<Dim3>,
    arguments: &'b Arguments,
) -> LaunchCommand<'b> {
    LaunchCommand {
        function,
        grid: grid.into(),
        block: block.into(),
        cluster: None,
        dynamic_shared_bytes: 0,
        cooperative: false,
        arguments: arguments.bytes(),
        declared: None,
        // SAFETY: every kernel of the set touches only what `kernels.rs` says, within the counts it is given; the laws
        // pass addresses of blocks that long, which the rig frees after their streams are done; `fault` alone
        // writes elsewhere, to an address that is never mapped.
        vouched: unsafe { Vouched::new() },
    }
}

/// The place so many bytes into a block.
pub(crate) fn at(base: impl Into<DevicePlace>, offset: u64) -> DevicePlace {
    base.into().plus(offset)
}

/// A place in a host block.
pub(crate) fn host_at(block: &HostBlock, offset: u64) -> Place {
    Place::Host { block: block.id(), offset }
}

pub(crate) fn write_host(block: &HostBlock, bytes: &[u8]) -> std::result::Result<(), Stop> {
    if block.write(0, bytes) {
        return Ok(());
    }
    Err(fail(format!("a host block of {} bytes", bytes.len()), format!("{block:?}")))
}

pub(crate) fn read_host(block: &HostBlock) -> std::result::Result<Vec<u8>, Stop> {
    let mut bytes = vec![0; block.len()];
    if block.read(0, &mut bytes) {
        return Ok(bytes);
    }
    Err(fail("to read a host block from end to end", "that it lies outside"))
}

/// Little-endian words of bytes.
pub(crate) fn as_words(bytes: &[u8]) -> Vec<u32> {
    let word = |chunk: &[u8]| chunk.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
    bytes.chunks_exact(4).map(word).collect()
}

/// Bytes that differ from place to place and from salt to salt.
pub(crate) fn noise(bytes: u64, salt: u64) -> Vec<u8> {
    let mut state = salt.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d;
    let mut step = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    (0..bytes).map(|_| step()).collect()
}
