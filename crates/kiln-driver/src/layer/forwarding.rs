//! The forwarding that all layers share.

use crate::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use crate::background_health::BackgroundHealth;
use crate::call::{Answer, Answered, Call};
use crate::clock::{Clock, Timeout, Waited};
use crate::code_image::{Function, Image, Occupancy};
use crate::command::{Command, Submission};
use crate::concurrent_bytes::SharedBytes;
use crate::device::{DeviceInfo, MemoryInfo};
use crate::driver::Driver;
use crate::error::{Error, Result};
use crate::graph::GraphNode;
use crate::handle::{
    EventId, FunctionId, GraphId, MemoryId, ModuleId, Object, PagesId, ReservationId, StreamId,
};
use crate::host_memory::HostBlock;
use crate::memory::{DeviceMemory, MemoryRequest, PageRequest, Protection, Reservation, ReserveRequest};
use crate::stream::{EventRequest, Health, Progress, StreamRequest, WaitTarget};
use crate::tensor_map::{TENSOR_MAP_BYTES, TensorMapRequest, TensorMaps};

/// What a layer does around each call.
pub trait Layer: Send + Sync + 'static {
    /// Before the call; an error is the answer instead of the call.
    ///
    /// # Errors
    /// Whatever the layer wants the caller to see.
    fn before(&self, driver: &dyn Driver, call: &Call<'_>) -> Result<()> {
        let _ = (driver, call);
        Ok(())
    }

    /// After the call.
    fn after(&self, call: &Call<'_>, answer: std::result::Result<Answer<'_>, &Error>) {
        let _ = (call, answer);
    }

    /// The error the caller sees where the call gave this one.
    fn explain(&self, error: Error) -> Error {
        error
    }
}

/// A driver with a layer around it.
// Placed so that the driver and a small layer lie in one cache line, which every call looks at.
#[repr(C, align(32))]
pub struct Layered<L> {
    inner: Arc<dyn Driver>,
    layer: L,
}

impl<L: Layer> Layered<L> {
    /// Puts a layer around a driver.
    pub fn new(inner: Arc<dyn Driver>, layer: L) -> Self {
        Self { inner, layer }
    }

    /// The layer, to ask what it saw.
    pub fn layer(&self) -> &L {
        &self.layer
    }

    /// The driver below.
    pub fn inner(&self) -> &Arc<dyn Driver> {
        &self.inner
    }

    #[inline]
    fn run<R: Answered>(&self, call: Call<'_>, run: impl FnOnce(&dyn Driver) -> Result<R>) -> Result<R> {
        self.layer.before(&*self.inner, &call)?;
        let result = run(&*self.inner);
        self.layer.after(&call, result.as_ref().map(Answered::answer));
        result.map_err(|error| self.layer.explain(error))
    }
}

impl<L: Layer> Driver for Layered<L> {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn memory_info(&self) -> Result<MemoryInfo> {
        self.run(Call::MemoryInfo, |driver| driver.memory_info())
    }

    fn health(&self) -> Health {
        match self.run(Call::Health, |driver| Ok(driver.health())) {
            Ok(health) => health,
            Err(error) => Health::Lost(error),
        }
    }

    fn clock(&self) -> &dyn Clock {
        self.inner.clock()
    }

    fn reserve(&self, request: ReserveRequest) -> Result<Reservation> {
        self.run(Call::Reserve { request }, |driver| driver.reserve(request))
    }

    fn create_pages(&self, request: PageRequest) -> Result<PagesId> {
        self.run(Call::CreatePages { request }, |driver| driver.create_pages(request))
    }

    fn map(&self, into: ReservationId, offset: u64, pages: &[PagesId], protection: Protection) -> Result<()> {
        let call = Call::Map { into, offset, pages, protection };
        self.run(call, |driver| driver.map(into, offset, pages, protection))
    }

    fn unmap(&self, from: ReservationId, offset: u64, bytes: u64) -> Result<()> {
        self.run(Call::Unmap { from, offset, bytes }, |driver| driver.unmap(from, offset, bytes))
    }

    fn protect(
        &self,
        reservation: ReservationId,
        offset: u64,
        bytes: u64,
        protection: Protection,
    ) -> Result<()> {
        let call = Call::Protect { reservation, offset, bytes, protection };
        self.run(call, |driver| driver.protect(reservation, offset, bytes, protection))
    }

    fn export_pages(&self, pages: PagesId) -> Result<OwnedFd> {
        self.run(Call::ExportPages { pages }, |driver| driver.export_pages(pages))
    }

    fn import_pages(&self, descriptor: BorrowedFd<'_>, bytes: u64) -> Result<PagesId> {
        self.run(Call::ImportPages { bytes }, |driver| driver.import_pages(descriptor, bytes))
    }

    fn allocate(&self, request: MemoryRequest) -> Result<DeviceMemory> {
        self.run(Call::Allocate { request }, |driver| driver.allocate(request))
    }

    fn free(&self, memory: MemoryId, stream: Option<StreamId>) -> Result<()> {
        self.run(Call::Free { memory, stream }, |driver| driver.free(memory, stream))
    }

    fn trim_pool(&self, keep_bytes: u64) -> Result<()> {
        self.run(Call::TrimPool { keep_bytes }, |driver| driver.trim_pool(keep_bytes))
    }

    fn allocate_host(&self, bytes: u64) -> Result<HostBlock> {
        self.run(Call::AllocateHost { bytes }, |driver| driver.allocate_host(bytes))
    }

    fn register_host(&self, bytes: Arc<SharedBytes>) -> Result<HostBlock> {
        let call = Call::RegisterHost { bytes: bytes.len() as u64 };
        self.run(call, |driver| driver.register_host(bytes))
    }

    fn create_stream(&self, request: StreamRequest) -> Result<StreamId> {
        self.run(Call::CreateStream { request }, |driver| driver.create_stream(request))
    }

    fn create_event(&self, request: EventRequest) -> Result<EventId> {
        self.run(Call::CreateEvent { request }, |driver| driver.create_event(request))
    }

    fn wait(&self, target: WaitTarget, timeout: Timeout) -> Result<Waited> {
        self.run(Call::Wait { target, timeout }, |driver| driver.wait(target, timeout))
    }

    fn elapsed(&self, from: EventId, to: EventId) -> Result<Duration> {
        self.run(Call::Elapsed { from, to }, |driver| driver.elapsed(from, to))
    }

    fn load(&self, image: &Image<'_>) -> Result<ModuleId> {
        self.run(Call::Load { image: *image }, |driver| driver.load(image))
    }

    fn function(&self, module: ModuleId, name: &str) -> Result<Function> {
        self.run(Call::Function { module, name }, |driver| driver.function(module, name))
    }

    fn global(&self, module: ModuleId, name: &str) -> Result<DeviceMemory> {
        self.run(Call::Global { module, name }, |driver| driver.global(module, name))
    }

    fn occupancy(
        &self,
        function: FunctionId,
        block_threads: u32,
        dynamic_shared_bytes: u32,
    ) -> Result<Occupancy> {
        let call = Call::Occupancy { function, block_threads, dynamic_shared_bytes };
        self.run(call, |driver| driver.occupancy(function, block_threads, dynamic_shared_bytes))
    }

    fn submit(&self, stream: StreamId, command: &Command<'_>) -> Result<Submission> {
        self.run(Call::Submit { stream, command }, |driver| driver.submit(stream, command))
    }

    fn progress(&self, stream: StreamId) -> Result<Progress> {
        self.run(Call::Progress { stream }, |driver| driver.progress(stream))
    }

    fn build_graph(&self, nodes: &[GraphNode<'_>]) -> Result<GraphId> {
        self.run(Call::BuildGraph { nodes }, |driver| driver.build_graph(nodes))
    }

    fn update_graph(&self, graph: GraphId, node: u32, command: &Command<'_>) -> Result<()> {
        let call = Call::UpdateGraph { graph, node, command };
        self.run(call, |driver| driver.update_graph(graph, node, command))
    }

    fn destroy(&self, object: Object) -> Result<()> {
        self.run(Call::Destroy { object }, |driver| driver.destroy(object))
    }

    fn native(&self, object: Object) -> Result<u64> {
        self.run(Call::Native { object }, |driver| driver.native(object))
    }
}

impl<L: Layer> BackgroundHealth for Layered<L> {
    fn health_in_background(&self) -> Option<Health> {
        let asked = |driver: &dyn Driver| driver.health_in_background().unwrap_or_else(|| driver.health());
        Some(self.run(Call::Health, |driver| Ok(asked(driver))).unwrap_or_else(Health::Lost))
    }
}

impl<L: Layer> TensorMaps for Layered<L> {
    // No call that layers see: it makes nothing, and the bytes are in the launches that use them.
    fn tensor_map(&self, request: &TensorMapRequest<'_>) -> Result<[u8; TENSOR_MAP_BYTES]> {
        self.inner.tensor_map(request).map_err(|error| self.layer.explain(error))
    }
}
