//! The driver interface: the `Driver` trait, through which the runtime uses every device.
//!
//! A [`Driver`] is an opened device. All of kiln above this trait is independent of CUDA. It is implemented by CUDA in
//! this process, by the simulated device, and by a proxy to a worker process. Work is a value: a [`Command`] is submitted
//! to a stream, and the same value can be scheduled by the simulator, sent to a worker, added to a graph or written to
//! a trace.
//!
//! ```text
//!        probe, runtime, order, memory, kernels, pipelines        written once
//!   ───────────────────────────────────────────────────────────
//!     layers:   Counting     Recording     Checking               Driver around a Driver
//!   ─────────────────────── trait Driver ──────────────────────
//!        kiln-cuda            kiln-sim            a proxy         implement it
//!        libcuda              a deterministic     to a worker
//!                             machine             process
//! ```
//!
//! # The contract
//!
//! What a driver promises:
//!
//! - Every call is safe, from any thread, at any time, with any handle. Handles are slot and generation, bound to
//!   their device; a stale or foreign one is refused and nothing is changed.
//! - No call panics and none blocks except [`Driver::wait`], which ends by its timeout, and also when the device is
//!   lost. (Pinning memory and allocating directly may take long; they wait for no stream. Loading code may take as
//!   long as the kernels that run: CUDA returns from a load only once they are done.)
//! - Commands on one stream run in the order they were submitted. Two streams are ordered only by an event that one
//!   signals and the other waits for, or by a host that waits in between.
//! - `submit` may report a failure later. It then arrives at a wait, at `progress` or at `health`, and names the
//!   submission it belongs to as well as the driver can tell.
//! - A lost device stays lost: every later call that needs the device returns the fault.
//! - Errors are of four kinds: out of memory, device lost, request refused, not supported.
//!
//! What a caller must do:
//!
//! - Order. Two commands that touch the same bytes, one of them writing, are ordered by stream, event or host.
//! - Lifetime. Memory, modules and graphs are freed after the last command that uses them is done, or, for pool
//!   memory, in the order of a stream that is ordered after it.
//! - Safety of launches. The caller guarantees that a kernel may run with its arguments; this is the one unsafe step: [`Vouched`].
//! - No call while a lock is held that other streams need.
//!
//! The simulator checks each of these rules.
//!
//! # Reading order
//!
//! [`Driver`] and [`Command`]; then [`Handle`] and [`Slots`], [`Error`], [`DeviceInfo`], [`HostBlock`] and
//! [`SharedBytes`], [`GraphNode`]; last the layers.
//!
//! # What it does not do
//!
//! It does not order anything by itself, remembers no accesses, pools nothing, and picks no device. Those stand
//! above, once, for all drivers.

mod background_health;
pub mod call;
#[cfg(feature = "trace")]
pub mod call_trace;
mod calling_line;
mod clock;
mod code_image;
mod command;
mod concurrent_bytes;
mod device;
mod driver;
mod driver_ext;
mod error;
pub mod fd;
mod finding;
pub mod graph;
mod handle;
mod host_memory;
pub mod layer;
mod memory;
mod result_code;
mod short_time;
mod slot_table;
mod stream;
mod suballocation;
mod tensor_map;

pub use background_health::BackgroundHealth;
pub use calling_line::CallingLine;
pub use clock::{Clock, Timeout, Waited, WallClock};
pub use code_image::{Function, FunctionAttributes, Image, Occupancy, ParameterSpan};
pub use command::{
    Base, Command, DeclaredSpan, DevicePlace, Dim3, LaunchCommand, Pattern, Place, Submission, Vouched,
};
pub use concurrent_bytes::SharedBytes;
pub use device::{
    Capability, DeviceInfo, DeviceKind, Features, Limits, MemoryInfo, PciId, Priorities, Uuid, Version,
};
pub use driver::Driver;
pub use driver_ext::DriverExt;
pub use error::{Error, ErrorKind, Fault, Refusal, Result, Site};
pub use finding::{DeviceFinding, FindingLine, FindingRule};
pub use graph::{GraphNode, NodeShape};
pub use handle::{
    DeviceKey, EventId, FunctionId, GraphId, Handle, HostId, Kind, MemoryId, ModuleId, Object, PagesId,
    ReservationId, StreamId, kind,
};
pub use host_memory::{Access, HostBlock, HostWatch};
pub use memory::{
    DeviceAddress, DeviceMemory, ForeignMemory, MemoryRequest, PageRequest, Protection, Reservation,
    ReserveRequest,
};
pub use result_code::Code;
pub use short_time::ShortTime;
pub use slot_table::{Pinned, Slots};
pub use stream::{EventRequest, ForeignHandle, Health, Progress, StreamRequest, WaitTarget};
pub use suballocation::{MemoryPart, PartKind, PartLabel};
pub use tensor_map::{TENSOR_MAP_BYTES, TensorMapBoxes, TensorMapRequest, TensorMaps};
