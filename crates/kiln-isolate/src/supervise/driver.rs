//! Implements `Driver` for an isolated device: every call goes to the proxy.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use kiln_driver::{
    BackgroundHealth, Clock, Command, DeviceInfo, DeviceMemory, Driver, EventId, EventRequest, Function,
    FunctionId, GraphId, GraphNode, Health, HostBlock, Image, MemoryId, MemoryInfo, MemoryRequest, ModuleId,
    Object, Occupancy, PageRequest, PagesId, Progress, Protection, Reservation, ReservationId,
    ReserveRequest, Result, SharedBytes, StreamId, StreamRequest, Submission, TENSOR_MAP_BYTES,
    TensorMapRequest, TensorMaps, Timeout, WaitTarget, Waited,
};

use super::isolated_device::IsolatedDevice;

impl BackgroundHealth for IsolatedDevice {}

impl TensorMaps for IsolatedDevice {
    fn tensor_map(&self, request: &TensorMapRequest<'_>) -> Result<[u8; TENSOR_MAP_BYTES]> {
        self.proxy.tensor_map(request)
    }
}

impl Driver for IsolatedDevice {
    fn info(&self) -> &DeviceInfo {
        &self.proxy.info
    }

    fn memory_info(&self) -> Result<MemoryInfo> {
        self.proxy.memory_info()
    }

    fn health(&self) -> Health {
        self.proxy.health()
    }

    fn clock(&self) -> &dyn Clock {
        &self.proxy.clock
    }

    fn reserve(&self, request: ReserveRequest) -> Result<Reservation> {
        self.proxy.reserve(request)
    }

    fn create_pages(&self, request: PageRequest) -> Result<PagesId> {
        self.proxy.create_pages(request)
    }

    fn map(&self, into: ReservationId, offset: u64, pages: &[PagesId], protection: Protection) -> Result<()> {
        self.proxy.map(into, offset, pages, protection)
    }

    fn unmap(&self, from: ReservationId, offset: u64, bytes: u64) -> Result<()> {
        self.proxy.unmap(from, offset, bytes)
    }

    fn protect(
        &self,
        reservation: ReservationId,
        offset: u64,
        bytes: u64,
        protection: Protection,
    ) -> Result<()> {
        self.proxy.protect(reservation, offset, bytes, protection)
    }

    fn export_pages(&self, pages: PagesId) -> Result<OwnedFd> {
        self.proxy.export_pages(pages)
    }

    fn import_pages(&self, descriptor: BorrowedFd<'_>, bytes: u64) -> Result<PagesId> {
        self.proxy.import_pages(descriptor, bytes)
    }

    fn allocate(&self, request: MemoryRequest) -> Result<DeviceMemory> {
        self.proxy.allocate(request)
    }

    fn free(&self, memory: MemoryId, stream: Option<StreamId>) -> Result<()> {
        self.proxy.free(memory, stream)
    }

    fn trim_pool(&self, keep_bytes: u64) -> Result<()> {
        self.proxy.trim_pool(keep_bytes)
    }

    fn allocate_host(&self, bytes: u64) -> Result<HostBlock> {
        self.proxy.allocate_host(bytes)
    }

    fn register_host(&self, _: Arc<SharedBytes>) -> Result<HostBlock> {
        Err(self.proxy.register_host())
    }

    fn create_stream(&self, request: StreamRequest) -> Result<StreamId> {
        self.proxy.create_stream(request)
    }

    fn create_event(&self, request: EventRequest) -> Result<EventId> {
        self.proxy.create_event(request)
    }

    fn wait(&self, target: WaitTarget, timeout: Timeout) -> Result<Waited> {
        self.proxy.wait(target, timeout)
    }

    fn elapsed(&self, from: EventId, to: EventId) -> Result<Duration> {
        self.proxy.elapsed(from, to)
    }

    fn load(&self, image: &Image<'_>) -> Result<ModuleId> {
        self.proxy.load(image)
    }

    fn function(&self, module: ModuleId, name: &str) -> Result<Function> {
        self.proxy.function(module, name)
    }

    fn global(&self, module: ModuleId, name: &str) -> Result<DeviceMemory> {
        self.proxy.global(module, name)
    }

    fn occupancy(
        &self,
        function: FunctionId,
        block_threads: u32,
        dynamic_shared_bytes: u32,
    ) -> Result<Occupancy> {
        self.proxy.occupancy(function, block_threads, dynamic_shared_bytes)
    }

    fn submit(&self, stream: StreamId, command: &Command<'_>) -> Result<Submission> {
        self.proxy.submit(stream, command)
    }

    fn progress(&self, stream: StreamId) -> Result<Progress> {
        self.proxy.progress(stream)
    }

    fn build_graph(&self, nodes: &[GraphNode<'_>]) -> Result<GraphId> {
        self.proxy.build_graph(nodes)
    }

    fn update_graph(&self, graph: GraphId, node: u32, command: &Command<'_>) -> Result<()> {
        self.proxy.update_graph(graph, node, command)
    }

    fn destroy(&self, object: Object) -> Result<()> {
        self.proxy.destroy(object)
    }

    fn native(&self, _: Object) -> Result<u64> {
        Err(self.proxy.native())
    }
}
