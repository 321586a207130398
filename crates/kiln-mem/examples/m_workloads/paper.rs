//! A device on paper: it keeps books of pages and streams and has no memory at all, so that a heap of many gigabytes
//! can be measured anywhere.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kiln_driver::{
    Capability, Clock, Command, DeviceAddress, DeviceInfo, DeviceKey, DeviceKind, Dim3, Driver, Error,
    EventId, EventRequest, Features, Function, FunctionId, GraphId, GraphNode, Health, HostBlock, Image,
    Limits, Memory, MemoryId, MemoryInfo, MemoryRequest, ModuleId, Object, Occupancy, PageRequest, PagesId,
    PciId, Priorities, Progress, Protection, Reservation, ReservationId, ReserveRequest, Result, SharedBytes,
    Slots, StreamId, StreamRequest, Submission, Timeout, Uuid, Version, WaitTarget, Waited, WallClock, kind,
};

/// A driver that writes down what it is asked to do.
pub(crate) struct Paper {
    info: DeviceInfo,
    clock: WallClock,
    pages: Slots<kind::Pages, u64>,
    reservations: Slots<kind::Reservation, u64>,
    streams: Slots<kind::Stream, ()>,
    used_bytes: AtomicU64,
    calls: AtomicU64,
}

impl Paper {
    /// A device with so much memory.
    pub(crate) fn new(memory_bytes: u64) -> Self {
        let key = DeviceKey::fresh();
        Self {
            info: info(key, memory_bytes),
            clock: WallClock::new(),
            pages: Slots::new(key),
            reservations: Slots::new(key),
            streams: Slots::new(key),
            used_bytes: AtomicU64::new(0),
            calls: AtomicU64::new(0),
        }
    }

    /// Calls so far.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    fn count(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }
}

fn none<T>(call: &'static str) -> Result<T> {
    Err(Error::unsupported(call, "this call", "a device on paper only keeps pages and streams"))
}

impl Driver for Paper {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn memory_info(&self) -> Result<MemoryInfo> {
        let total_bytes = self.info.total_memory_bytes;
        Ok(MemoryInfo { free_bytes: total_bytes - self.used_bytes.load(Ordering::Relaxed), total_bytes })
    }

    fn health(&self) -> Health {
        Health::Healthy
    }

    fn clock(&self) -> &dyn Clock {
        &self.clock
    }

    fn reserve(&self, request: ReserveRequest) -> Result<Reservation> {
        self.count();
        let id = self.reservations.insert(request.bytes)?;
        Ok(Reservation { id, address: DeviceAddress(0x6000_0000_0000), bytes: request.bytes })
    }

    fn create_pages(&self, request: PageRequest) -> Result<PagesId> {
        self.count();
        let used = self.used_bytes.fetch_add(request.bytes, Ordering::Relaxed);
        if used + request.bytes > self.info.total_memory_bytes {
            self.used_bytes.fetch_sub(request.bytes, Ordering::Relaxed);
            return Err(Error::out_of_memory("create_pages", request.bytes, None));
        }
        self.pages.insert(request.bytes)
    }

    fn map(&self, _: ReservationId, _: u64, _: &[PagesId], _: Protection) -> Result<()> {
        self.count();
        Ok(())
    }

    fn unmap(&self, _: ReservationId, _: u64, _: u64) -> Result<()> {
        self.count();
        Ok(())
    }

    fn protect(&self, _: ReservationId, _: u64, _: u64, _: Protection) -> Result<()> {
        none("protect")
    }

    fn export_pages(&self, _: PagesId) -> Result<OwnedFd> {
        none("export_pages")
    }

    fn import_pages(&self, _: BorrowedFd<'_>, _: u64) -> Result<PagesId> {
        none("import_pages")
    }

    fn allocate(&self, _: MemoryRequest) -> Result<Memory> {
        none("allocate")
    }

    fn free(&self, _: MemoryId, _: Option<StreamId>) -> Result<()> {
        none("free")
    }

    fn trim_pool(&self, _: u64) -> Result<()> {
        none("trim_pool")
    }

    fn allocate_host(&self, _: u64) -> Result<HostBlock> {
        none("allocate_host")
    }

    fn register_host(&self, _: Arc<SharedBytes>) -> Result<HostBlock> {
        none("register_host")
    }

    fn create_stream(&self, _: StreamRequest) -> Result<StreamId> {
        self.count();
        self.streams.insert(())
    }

    fn create_event(&self, _: EventRequest) -> Result<EventId> {
        none("create_event")
    }

    fn wait(&self, _: WaitTarget, _: Timeout) -> Result<Waited> {
        Ok(Waited::Done)
    }

    fn elapsed(&self, _: EventId, _: EventId) -> Result<Duration> {
        none("elapsed")
    }

    fn load(&self, _: &Image<'_>) -> Result<ModuleId> {
        none("load")
    }

    fn function(&self, _: ModuleId, _: &str) -> Result<Function> {
        none("function")
    }

    fn global(&self, _: ModuleId, _: &str) -> Result<Memory> {
        none("global")
    }

    fn occupancy(&self, _: FunctionId, _: u32, _: u32) -> Result<Occupancy> {
        none("occupancy")
    }

    fn submit(&self, _: StreamId, _: &Command<'_>) -> Result<Submission> {
        none("submit")
    }

    fn progress(&self, _: StreamId) -> Result<Progress> {
        Ok(Progress::default())
    }

    fn build_graph(&self, _: &[GraphNode<'_>]) -> Result<GraphId> {
        none("build_graph")
    }

    fn update_graph(&self, _: GraphId, _: u32, _: &Command<'_>) -> Result<()> {
        none("update_graph")
    }

    fn destroy(&self, object: Object) -> Result<()> {
        self.count();
        if let Object::Pages(id) = object
            && let Some(bytes) = self.pages.remove(id)?
        {
            self.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
        Ok(())
    }

    fn native(&self, _: Object) -> Result<u64> {
        none("native")
    }
}

fn info(key: DeviceKey, memory_bytes: u64) -> DeviceInfo {
    DeviceInfo {
        key,
        ordinal: 0,
        kind: DeviceKind::Simulated,
        name: "paper".into(),
        uuid: Uuid([0; 16]),
        pci: PciId { domain: 0, bus: 0, device: 0 },
        capability: Capability { major: 9, minor: 0 },
        driver_version: Version { major: 12, minor: 4 },
        total_memory_bytes: memory_bytes,
        mig: false,
        limits: Limits {
            max_grid: Dim3::new(1, 1, 1),
            max_block: Dim3::new(1, 1, 1),
            max_threads_per_block: 1,
            max_cluster_blocks: 1,
            warp_threads: 32,
            multiprocessors: 1,
            max_threads_per_multiprocessor: 1,
            max_blocks_per_multiprocessor: 1,
            max_registers_per_block: 1,
            shared_bytes_per_block: 0,
            shared_bytes_per_block_optin: 0,
            shared_bytes_per_multiprocessor: 0,
            constant_bytes: 0,
            max_argument_bytes: 0,
            l2_bytes: 0,
            allocation_alignment_bytes: 256,
            page_granularity_bytes: 2 << 20,
            priorities: Priorities { lowest: 0, highest: 0 },
        },
        features: Features { pages: true, ..Features::default() },
    }
}
