//! The `Driver` trait.

use crate::background_health::BackgroundHealth;
use crate::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use crate::clock::{Clock, Timeout, Waited};
use crate::code_image::{Function, Image, Occupancy};
use crate::command::{Command, Submission};
use crate::concurrent_bytes::SharedBytes;
use crate::device::{DeviceInfo, MemoryInfo};
use crate::error::Result;
use crate::graph::GraphNode;
use crate::handle::{
    EventId, FunctionId, GraphId, MemoryId, ModuleId, Object, PagesId, ReservationId, StreamId,
};
use crate::host_memory::HostBlock;
use crate::memory::{DeviceMemory, MemoryRequest, PageRequest, Protection, Reservation, ReserveRequest};
use crate::stream::{EventRequest, Health, Progress, StreamRequest, WaitTarget};
use crate::tensor_map::TensorMaps;

/// One opened device. The [crate docs](crate) have the contract.
///
/// Every call may come from any thread at any time. A call that returns an error has changed nothing, except that a
/// lost device stays lost.
pub trait Driver: BackgroundHealth + TensorMaps + Send + Sync + 'static {
    // What every launch calls comes first: there it shares a cache line with what else a call through a table looks at.

    /// Queues a command and returns its number on the stream. Two threads that submit to one stream at once are
    /// ordered one way or the other.
    ///
    /// # Errors
    /// Lost; refused for handles that are stale or foreign, ranges outside of their block, and shapes outside of the
    /// limits. What goes wrong while the command runs is reported later, by [`wait`](Self::wait),
    /// [`progress`](Self::progress) or [`health`](Self::health), with the site of the command.
    fn submit(&self, stream: StreamId, command: &Command<'_>) -> Result<Submission>;

    // The device.

    /// What the device is and can do.
    fn info(&self) -> &DeviceInfo;

    /// What is free right now.
    ///
    /// # Errors
    /// Lost.
    fn memory_info(&self) -> Result<MemoryInfo>;

    /// Whether the device can still be used, asked without waiting for work.
    fn health(&self) -> Health;

    /// The device's time.
    fn clock(&self) -> &dyn Clock;

    // Pages.

    /// Reserves addresses.
    ///
    /// # Errors
    /// Refused if the size is zero or no multiple of the page granularity, or the wanted address is taken;
    /// unsupported without pages.
    fn reserve(&self, request: ReserveRequest) -> Result<Reservation>;

    /// Creates physical memory, with nothing known of its contents.
    ///
    /// # Errors
    /// Out of memory; refused for a size that is zero or no multiple of the page granularity; unsupported without
    /// pages or, if it is to be exported, without export.
    fn create_pages(&self, request: PageRequest) -> Result<PagesId>;

    /// Maps pages one after the other, from an offset in a reservation.
    ///
    /// # Errors
    /// Refused if they do not fit or something is mapped there; then none is mapped.
    fn map(&self, into: ReservationId, offset: u64, pages: &[PagesId], protection: Protection) -> Result<()>;

    /// Takes whole mappings out of a reservation. No queued work may use them any more.
    ///
    /// # Errors
    /// Refused if the range cuts a mapping or holds none.
    fn unmap(&self, from: ReservationId, offset: u64, bytes: u64) -> Result<()>;

    /// Changes what kernels may do to whole mappings, from here on.
    ///
    /// # Errors
    /// Refused if the range cuts a mapping or is not fully mapped.
    fn protect(
        &self,
        reservation: ReservationId,
        offset: u64,
        bytes: u64,
        protection: Protection,
    ) -> Result<()>;

    /// A file descriptor that keeps the memory alive, also after this process is gone.
    ///
    /// # Errors
    /// Refused if the pages were not created to be exported.
    fn export_pages(&self, pages: PagesId) -> Result<OwnedFd>;

    /// Pages that were exported.
    ///
    /// # Errors
    /// Refused if the descriptor is not such memory or has another size.
    fn import_pages(&self, descriptor: BorrowedFd<'_>, bytes: u64) -> Result<PagesId>;

    // Plain memory.

    /// Allocates memory, with nothing known of its contents.
    ///
    /// # Errors
    /// Out of memory; refused for zero bytes; unsupported for a kind the device lacks.
    fn allocate(&self, request: MemoryRequest) -> Result<DeviceMemory>;

    /// Frees memory. Pool memory is freed in the order of a stream and wants one; other memory wants none, and no
    /// queued work may use it any more. A [part](MemoryRequest::Part) is freed with or without one: work that was queued before may still
    /// use it, and the stream is named in messages.
    ///
    /// # Errors
    /// Refused without a stream where one is wanted or with one where none is, and for a variable of a module.
    fn free(&self, memory: MemoryId, stream: Option<StreamId>) -> Result<()>;

    /// Gives memory the driver's pool holds unused back to the device, down to so many bytes.
    ///
    /// # Errors
    /// Unsupported without a pool.
    fn trim_pool(&self, keep_bytes: u64) -> Result<()>;

    /// Host memory that copies at full speed. Its contents are zero.
    ///
    /// # Errors
    /// Out of memory; refused for zero bytes.
    fn allocate_host(&self, bytes: u64) -> Result<HostBlock>;

    /// Makes host memory that exists already copy at full speed.
    ///
    /// # Errors
    /// Refused for zero bytes and for memory that is registered already; unsupported without registration.
    fn register_host(&self, bytes: Arc<SharedBytes>) -> Result<HostBlock>;

    // Streams and events.

    /// Creates a stream.
    ///
    /// # Errors
    /// Refused for a priority outside of the limits.
    fn create_stream(&self, request: StreamRequest) -> Result<StreamId>;

    /// Creates an event.
    ///
    /// # Errors
    /// Out of memory.
    fn create_event(&self, request: EventRequest) -> Result<EventId>;

    /// Waits on the host. What is done then happened before everything the host does next.
    ///
    /// # Errors
    /// Lost, also if the device is lost while waiting; or the late failure of a submission that was waited for.
    fn wait(&self, target: WaitTarget, timeout: Timeout) -> Result<Waited>;

    /// Device time between two timed events, both signalled and done.
    ///
    /// # Errors
    /// Refused if one is not timed, not signalled or not done.
    fn elapsed(&self, from: EventId, to: EventId) -> Result<Duration>;

    // Code.

    /// Loads code. Of [`Image::PtxToKeep`] it also hands out the machine code, where the device has any.
    ///
    /// # Errors
    /// Refused with the loader's log; unsupported for a kind the device cannot run.
    fn load(&self, image: &Image<'_>) -> Result<ModuleId>;

    /// Looks a kernel up.
    ///
    /// # Errors
    /// Refused if the module has none of that name.
    fn function(&self, module: ModuleId, name: &str) -> Result<Function>;

    /// Looks a variable of a module up; its memory lives and dies with the module.
    ///
    /// # Errors
    /// Refused if the module has none of that name.
    fn global(&self, module: ModuleId, name: &str) -> Result<DeviceMemory>;

    /// How many blocks of a kernel fit on a multiprocessor.
    ///
    /// # Errors
    /// Refused for a block no multiprocessor can hold.
    fn occupancy(
        &self,
        function: FunctionId,
        block_threads: u32,
        dynamic_shared_bytes: u32,
    ) -> Result<Occupancy>;

    // Work.

    /// How far a stream is, without waiting.
    ///
    /// # Errors
    /// Lost, or the late failure of a submission to this stream.
    fn progress(&self, stream: StreamId) -> Result<Progress>;

    // Graphs.

    /// Builds a graph.
    ///
    /// # Errors
    /// Refused as [`check_nodes`](crate::graph::check_nodes) says, or for a command that [`submit`](Self::submit)
    /// would refuse.
    fn build_graph(&self, nodes: &[GraphNode<'_>]) -> Result<GraphId>;

    /// Replaces the command of a node by one of the same kind and shape. Launches of the graph already queued keep the
    /// old one. Of the same shape are launches that are both cooperative or both not and have the same clusters, copies
    /// between the same sides (host or device), and copies and fills of no bytes, which are all alike.
    ///
    /// # Errors
    /// Refused for an unknown node, another kind or shape of command, or a kernel of another function where the driver
    /// cannot change that; the graph is unchanged.
    fn update_graph(&self, graph: GraphId, node: u32, command: &Command<'_>) -> Result<()>;

    // Everything.

    /// Takes an object back. Its handle is stale from here on.
    ///
    /// # Errors
    /// Refused if it is stale or foreign, or still in use in a way the driver can see.
    fn destroy(&self, object: Object) -> Result<()>;

    /// The native handle behind an object, for libraries that call CUDA themselves.
    ///
    /// # Errors
    /// Unsupported where there is none.
    fn native(&self, object: Object) -> Result<u64>;
}
