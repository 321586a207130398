//! A device of the machine, as a `Driver`.

use kiln_driver::fd::{BorrowedFd, OwnedFd};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kiln_driver::call::Call;
use kiln_driver::{
    BackgroundHealth, Clock, Command, DeviceInfo, DeviceMemory, Driver, EventId, EventRequest, Function,
    FunctionId, GraphId, GraphNode, Health, HostBlock, Image, MemoryId, MemoryInfo, MemoryRequest, ModuleId,
    Object, Occupancy, PageRequest, PagesId, Progress, Protection, Reservation, ReservationId,
    ReserveRequest, Result, SharedBytes, StreamId, StreamRequest, Submission, TENSOR_MAP_BYTES,
    TensorMapRequest, TensorMaps, Timeout, WaitTarget, Waited,
};

use crate::code::tensor_map;
use crate::device::objects::Objects;
use crate::machine::{Machine, World};
use crate::machine_config::MachineConfig;
use crate::schedule::machine_core::Core;
use crate::schedule::virtual_clock::VirtualClock;

/// One device of a [`Machine`].
pub struct SimDevice {
    world: Arc<World>,
    objects: Arc<Objects>,
    clock: VirtualClock,
}

impl SimDevice {
    pub(crate) fn new(world: Arc<World>, objects: Arc<Objects>) -> Self {
        let clock = VirtualClock::new(world.core.clone());
        Self { world, objects, clock }
    }

    /// The only device of a new machine with the default configuration.
    pub fn single(seed: u64) -> Arc<Self> {
        let world = World::new(MachineConfig::seeded(seed));
        let objects = world.core.devices[0].clone();
        Arc::new(Self::new(world, objects))
    }

    /// The machine it belongs to.
    pub fn machine(&self) -> Machine {
        Machine::of(self.world.clone())
    }

    fn core(&self) -> &Arc<Core> {
        &self.world.core
    }

    fn traced<R: kiln_driver::call::Answered>(
        &self,
        call: Call<'_>,
        run: impl FnOnce(&Core, &Objects) -> Result<R>,
    ) -> Result<R> {
        self.core().traced(self.objects.info.ordinal, call, || run(self.core(), &self.objects))
    }
}

impl BackgroundHealth for SimDevice {
    fn health_in_background(&self) -> Option<Health> {
        Some(self.core().health_in_background(self.objects.info.ordinal))
    }
}

impl TensorMaps for SimDevice {
    fn tensor_map(&self, request: &TensorMapRequest<'_>) -> Result<[u8; TENSOR_MAP_BYTES]> {
        tensor_map::encode(request)
    }
}

impl Driver for SimDevice {
    fn info(&self) -> &DeviceInfo {
        &self.objects.info
    }

    fn memory_info(&self) -> Result<MemoryInfo> {
        self.traced(Call::MemoryInfo, Core::memory_info)
    }

    fn health(&self) -> Health {
        self.core().health(self.objects.info.ordinal)
    }

    fn clock(&self) -> &dyn Clock {
        &self.clock
    }

    fn reserve(&self, request: ReserveRequest) -> Result<Reservation> {
        self.traced(Call::Reserve { request }, |core, objects| core.reserve(objects, request))
    }

    fn create_pages(&self, request: PageRequest) -> Result<PagesId> {
        self.traced(Call::CreatePages { request }, |core, objects| core.create_pages(objects, request))
    }

    fn map(&self, into: ReservationId, offset: u64, pages: &[PagesId], protection: Protection) -> Result<()> {
        let call = Call::Map { into, offset, pages, protection };
        self.traced(call, |core, objects| core.map(objects, into, offset, pages, protection))
    }

    fn unmap(&self, from: ReservationId, offset: u64, bytes: u64) -> Result<()> {
        let call = Call::Unmap { from, offset, bytes };
        self.traced(call, |core, objects| core.unmap(objects, from, offset, bytes))
    }

    fn protect(
        &self,
        reservation: ReservationId,
        offset: u64,
        bytes: u64,
        protection: Protection,
    ) -> Result<()> {
        let call = Call::Protect { reservation, offset, bytes, protection };
        self.traced(call, |core, objects| core.protect(objects, reservation, offset, bytes, protection))
    }

    fn export_pages(&self, pages: PagesId) -> Result<OwnedFd> {
        self.traced(Call::ExportPages { pages }, |core, objects| core.export_pages(objects, pages))
    }

    fn import_pages(&self, descriptor: BorrowedFd<'_>, bytes: u64) -> Result<PagesId> {
        self.traced(Call::ImportPages { bytes }, |core, objects| {
            core.import_pages(objects, descriptor, bytes)
        })
    }

    fn allocate(&self, request: MemoryRequest) -> Result<DeviceMemory> {
        self.traced(Call::Allocate { request }, |core, objects| core.allocate(objects, request))
    }

    fn free(&self, memory: MemoryId, stream: Option<StreamId>) -> Result<()> {
        self.traced(Call::Free { memory, stream }, |core, objects| core.free(objects, memory, stream))
    }

    fn trim_pool(&self, keep_bytes: u64) -> Result<()> {
        self.traced(Call::TrimPool { keep_bytes }, |core, objects| core.trim_pool(objects, keep_bytes))
    }

    fn allocate_host(&self, bytes: u64) -> Result<HostBlock> {
        self.traced(Call::AllocateHost { bytes }, |_, _| self.core().allocate_host(&self.objects, bytes))
    }

    fn register_host(&self, bytes: Arc<SharedBytes>) -> Result<HostBlock> {
        let call = Call::RegisterHost { bytes: bytes.len() as u64 };
        self.traced(call, |_, _| self.core().register_host(&self.objects, bytes))
    }

    fn create_stream(&self, request: StreamRequest) -> Result<StreamId> {
        self.traced(Call::CreateStream { request }, |core, objects| core.create_stream(objects, request))
    }

    fn create_event(&self, request: EventRequest) -> Result<EventId> {
        self.traced(Call::CreateEvent { request }, |core, objects| core.create_event(objects, request))
    }

    fn wait(&self, target: WaitTarget, timeout: Timeout) -> Result<Waited> {
        self.traced(Call::Wait { target, timeout }, |core, objects| core.wait(objects, target, timeout))
    }

    fn elapsed(&self, from: EventId, to: EventId) -> Result<Duration> {
        self.traced(Call::Elapsed { from, to }, |core, objects| core.elapsed(objects, from, to))
    }

    fn load(&self, image: &Image<'_>) -> Result<ModuleId> {
        self.traced(Call::Load { image: *image }, |core, objects| {
            self.world.start_host_threads(image)?;
            core.load(objects, image)
        })
    }

    fn function(&self, module: ModuleId, name: &str) -> Result<Function> {
        self.traced(Call::Function { module, name }, |core, objects| core.function(objects, module, name))
    }

    fn global(&self, module: ModuleId, name: &str) -> Result<DeviceMemory> {
        self.traced(Call::Global { module, name }, |core, objects| core.global(objects, module, name))
    }

    fn occupancy(
        &self,
        function: FunctionId,
        block_threads: u32,
        dynamic_shared_bytes: u32,
    ) -> Result<Occupancy> {
        let call = Call::Occupancy { function, block_threads, dynamic_shared_bytes };
        self.traced(call, |core, objects| {
            core.occupancy(objects, function, block_threads, dynamic_shared_bytes)
        })
    }

    fn submit(&self, stream: StreamId, command: &Command<'_>) -> Result<Submission> {
        self.traced(Call::Submit { stream, command }, |core, objects| core.submit(objects, stream, command))
    }

    fn progress(&self, stream: StreamId) -> Result<Progress> {
        self.traced(Call::Progress { stream }, |core, objects| core.progress(objects, stream))
    }

    fn build_graph(&self, nodes: &[GraphNode<'_>]) -> Result<GraphId> {
        self.traced(Call::BuildGraph { nodes }, |core, objects| core.build_graph(objects, nodes))
    }

    fn update_graph(&self, graph: GraphId, node: u32, command: &Command<'_>) -> Result<()> {
        let call = Call::UpdateGraph { graph, node, command };
        self.traced(call, |core, objects| core.update_graph(objects, graph, node, command))
    }

    fn destroy(&self, object: Object) -> Result<()> {
        self.traced(Call::Destroy { object }, |core, objects| core.destroy(objects, object))
    }

    fn native(&self, object: Object) -> Result<u64> {
        self.traced(Call::Native { object }, |core, objects| core.native(objects, object))
    }
}

impl fmt::Debug for SimDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "simulated device {}", self.objects.info.ordinal)
    }
}
