//! Implements `Driver` for CUDA; each group of calls has its own file.

use kiln_driver::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use kiln_driver::{
    BackgroundHealth, Clock, Command, DeviceInfo, DeviceMemory, Driver, Error, EventId, EventRequest,
    Function, FunctionId, GraphId, GraphNode, Health, HostBlock, Image, MemoryId, MemoryInfo, MemoryRequest,
    ModuleId, Object, Occupancy, PageRequest, PagesId, Progress, Protection, Reservation, ReservationId,
    ReserveRequest, Result, SharedBytes, StreamId, StreamRequest, Submission, TENSOR_MAP_BYTES,
    TensorMapRequest, TensorMaps, Timeout, WaitTarget, Waited,
};

use crate::device::CudaDevice;

impl BackgroundHealth for CudaDevice {}

impl TensorMaps for CudaDevice {
    fn tensor_map(&self, request: &TensorMapRequest<'_>) -> Result<[u8; TENSOR_MAP_BYTES]> {
        self.tensor_map(request)
    }
}

impl Driver for CudaDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn memory_info(&self) -> Result<MemoryInfo> {
        self.memory_info()
    }

    fn health(&self) -> Health {
        self.health()
    }

    fn clock(&self) -> &dyn Clock {
        &self.clock
    }

    fn reserve(&self, request: ReserveRequest) -> Result<Reservation> {
        self.reserve(request)
    }

    fn create_pages(&self, request: PageRequest) -> Result<PagesId> {
        self.create_pages(request)
    }

    fn map(&self, into: ReservationId, offset: u64, pages: &[PagesId], protection: Protection) -> Result<()> {
        self.map(into, offset, pages, protection)
    }

    fn unmap(&self, from: ReservationId, offset: u64, bytes: u64) -> Result<()> {
        self.unmap(from, offset, bytes)
    }

    fn protect(
        &self,
        reservation: ReservationId,
        offset: u64,
        bytes: u64,
        protection: Protection,
    ) -> Result<()> {
        self.protect(reservation, offset, bytes, protection)
    }

    fn export_pages(&self, pages: PagesId) -> Result<OwnedFd> {
        self.export_pages(pages)
    }

    fn import_pages(&self, descriptor: BorrowedFd<'_>, bytes: u64) -> Result<PagesId> {
        self.import_pages(descriptor, bytes)
    }

    fn allocate(&self, request: MemoryRequest) -> Result<DeviceMemory> {
        self.allocate(request)
    }

    fn free(&self, memory: MemoryId, stream: Option<StreamId>) -> Result<()> {
        self.free(memory, stream)
    }

    fn trim_pool(&self, keep_bytes: u64) -> Result<()> {
        self.trim_pool(keep_bytes)
    }

    fn allocate_host(&self, bytes: u64) -> Result<HostBlock> {
        self.allocate_host(bytes)
    }

    fn register_host(&self, bytes: Arc<SharedBytes>) -> Result<HostBlock> {
        self.register_host(bytes)
    }

    fn create_stream(&self, request: StreamRequest) -> Result<StreamId> {
        self.create_stream(request)
    }

    fn create_event(&self, request: EventRequest) -> Result<EventId> {
        self.create_event(request)
    }

    fn wait(&self, target: WaitTarget, timeout: Timeout) -> Result<Waited> {
        match target {
            WaitTarget::Event(event) => self.wait_event("wait", event, timeout),
            WaitTarget::Stream(stream) => self.wait_stream("wait", stream, timeout),
            WaitTarget::Findings => {
                Err(Error::unsupported("wait", "findings", "hardware checks nothing; use the simulator"))
            }
        }
    }

    fn elapsed(&self, from: EventId, to: EventId) -> Result<Duration> {
        self.elapsed(from, to)
    }

    fn load(&self, image: &Image<'_>) -> Result<ModuleId> {
        self.load(image)
    }

    fn function(&self, module: ModuleId, name: &str) -> Result<Function> {
        self.function(module, name)
    }

    fn global(&self, module: ModuleId, name: &str) -> Result<DeviceMemory> {
        self.global(module, name)
    }

    fn occupancy(
        &self,
        function: FunctionId,
        block_threads: u32,
        dynamic_shared_bytes: u32,
    ) -> Result<Occupancy> {
        self.occupancy(function, block_threads, dynamic_shared_bytes)
    }

    fn submit(&self, stream: StreamId, command: &Command<'_>) -> Result<Submission> {
        self.submit(stream, command)
    }

    fn progress(&self, stream: StreamId) -> Result<Progress> {
        self.progress(stream)
    }

    fn build_graph(&self, nodes: &[GraphNode<'_>]) -> Result<GraphId> {
        self.build_graph(nodes)
    }

    fn update_graph(&self, graph: GraphId, node: u32, command: &Command<'_>) -> Result<()> {
        self.update_graph(graph, node, command)
    }

    fn destroy(&self, object: Object) -> Result<()> {
        self.destroy(object)
    }

    fn native(&self, object: Object) -> Result<u64> {
        self.native(object)
    }
}
