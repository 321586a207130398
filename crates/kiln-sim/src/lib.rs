//! A device without a GPU: deterministic, asynchronous, and it checks every access.
//!
//! A [`Machine`] is a set of simulated devices with one clock, one order of events and one report. A [`SimDevice`]
//! is one of its devices and implements all of [`kiln_driver::Driver`]: streams are asynchronous, addresses
//! can be reserved and pages mapped, exported and imported by another process, kernels run, graphs keep their edges,
//! and memory is limited. Programs written for a GPU run on it unchanged, and the other way round.
//!
//! ```text
//!    program ── Driver calls ──►  SimDevice 0   SimDevice 1   ...        one Machine
//!                                     │             │
//!                 queues per stream   ▼             ▼
//!               ┌───────────────────────────────────────────┐
//!               │  which step runs next?                    │ ◄── seed, schedule, or threads
//!               │  when does it begin and end?              │ ◄── virtual clock, cost model, fault plan
//!               │  may it touch these bytes now?            │ ◄── address map, lifetimes, happens-before
//!               └───────────────────────────────────────────┘
//!                    │               │                │
//!                  trace          timeline         findings
//! ```
//!
//! ```
//! use kiln_driver::{Driver, DriverExt, EventRequest, MemoryRequest, StreamRequest};
//! use kiln_sim::{Machine, MachineConfig};
//!
//! let machine = Machine::new(MachineConfig::seeded(42));
//! let device = machine.device(0)?;
//! let one = device.create_stream(StreamRequest::New { priority: 0 })?;
//! let two = device.create_stream(StreamRequest::New { priority: 0 })?;
//! let event = device.create_event(EventRequest::Plain)?;
//! let memory = device.allocate(MemoryRequest::Direct { bytes: 1024 })?;
//! let host = device.allocate_host(1024)?;
//!
//! device.fill(one, memory.id.into(), 7, 1024)?;
//! device.order(one, event, two)?; // without this line the report below is not clean
//! device.download(two, memory.id.into(), &host, 1024)?;
//! device.synchronize(two)?;
//!
//! let mut bytes = [0; 1024];
//! assert!(host.read(0, &mut bytes));
//! assert_eq!(bytes, [7; 1024]);
//!
//! device.free(memory.id, None)?;
//! for object in [one.into(), two.into(), event.into(), host.id().into()] {
//!     device.destroy(object)?;
//! }
//! let report = machine.finish();
//! assert!(report.is_clean(), "{report}");
//! # Ok::<(), kiln_driver::Error>(())
//! ```
//!
//! # The model
//!
//! **Order.** Every stream is a lane, the host is one more, and the branches of a graph are lanes too. Each step knows,
//! as a vector clock, what happened before it: what was queued before on its stream, what an event it waits for had
//! behind it when it was signalled, and what the host knew when it was submitted. The host learns by a wait or a poll
//! that says done, and by `progress`. Whether two steps are ordered is therefore known from the calls alone; it does not
//! depend on which ran first. So a missing dependency is found with every seed.
//!
//! **Time.** The clock is virtual. A call takes a fixed host time; copies, fills and kernels take the device time that
//! [`Costs`] sets. Streams overlap, and a wait moves the host's clock to the end of what it waited for, so that a
//! simulated minute of waiting takes no real time.
//!
//! **Scheduling.** Queued work runs only when the host waits. Then one of the streams that can continue runs a step. [`Mode`]
//! selects how it is chosen: by a seed; by an explicit schedule ([`explore`] tries all of them); or by the operating system, with
//! real threads. A poll, a sleep or a call of `health` may run a step; after several of them one runs. Functions of the host
//! ([`HostKernel::on_host_thread`]) run on a separate thread, and while some are queued the device moves by itself.
//!
//! **Memory.** Bytes belong to a piece of memory, and addresses to a mapping of it; both have a beginning and an end.
//! Addresses of memory are not given out twice. A block that a resource hands out of larger memory begins and ends as well, if the
//! resource says so (`MemoryRequest::Part`): it is new for what is submitted after its beginning, and freed for what is submitted after its
//! end. What is not touched costs nothing, so a device may have more memory than the host.
//!
//! **Kernels.** A [`SimKernel`] says what it takes and runs; it reaches device memory through a [`MemoryView`] that checks
//! each access. [`HostKernel`]s are host functions, loaded by `Image::HostKernels`. A [`CodeEngine`] turns PTX into
//! kernels.
//!
//! # What it finds
//!
//! [`FindingKind`] is the list. In short: two accesses to the same byte, one of them writing, with no order between them,
//! be it by kernels, copies, fills, nodes of a graph or the host through a `HostBlock`; memory used before its
//! allocation, after its free, or freed before its last use is known to be done; bytes read that were never written; accesses
//! out of bounds, misaligned, or to pages that may only be read; kernels that touch what they did not declare; events,
//! modules and graphs destroyed while work needs them; double frees; leaks; work that hangs while the host waits; ranks of a
//! communicator that call different collectives or wait for ranks that do not come. A [`Finding`] names both sides, the bytes, the block, and how to see it again.
//!
//! # What it injects
//!
//! [`FaultPlan`]: out of memory at the nth allocation, a sticky error or a hang at the nth launch, a device lost at a
//! call or at a time, slow copies, a load that fails, a link between two devices that is cut or slow; also as text. [`DeviceConfig`]: small and old devices, little memory, a device
//! that cannot be opened. [`Links`]: devices that cannot copy to each other.
//!
//! When a device is lost, what other devices wait for on it counts as done, and a copy from or to it moves nothing: the bytes that it was to
//! write are undefined from then on. On hardware that is not promised.
//!
//! # What it promises
//!
//! - The same configuration and the same calls from one thread give the same trace, byte for byte, on any machine. With
//!   several host threads, functions of the host, or [`Mode::Threaded`], the findings are the same kind of truth but the order is theirs.
//! - What a step touches is compared with every step not ordered with it. A program that keeps the contract of the driver interface
//!   is never reported.
//! - A finding changes nothing. What hardware would fault on (an address with nothing behind it) faults here, and the
//!   device is lost with the code and the site.
//! - No call waits for real time, except for work that threads are running, for functions of the host, and for ranks of a communicator that another thread may
//!   still submit for.
//!
//! # What it cannot see
//!
//! - Host threads among themselves: all of them are one lane. Two threads that use a host block without a lock are
//!   not found.
//! - Whether the program heard of a function of the host that began: what is before the function counts as known to the host from then on.
//! - Host memory touched past its `HostBlock`, through a pointer, unless `HostBlock::touch` says so.
//! - Races between threads of one kernel; that is for the engine that runs them.
//! - Bounds inside of one mapping, if the launch does not declare what it may touch: a heap over pages places many blocks in it, and a
//!   kernel that leaves its block for another live one stays in the mapping. The order of accesses is still checked, byte by byte.
//! - What other processes do to pages they share.
//! - An order that a collective makes between accesses of two ranks to the same memory.
//! - Whether real time would have been enough: timing is a model.
//!
//! # Reading order
//!
//! [`MachineConfig`], [`Machine`], [`SimDevice`]; [`HostKernel`], [`SimKernel`], [`LaunchContext`], [`MemoryView`],
//! [`MemoryPort`], [`CodeEngine`]; [`Finding`], [`SimReport`], [`explore`]; [`FaultPlan`], [`Costs`], [`Links`], [`TimelineSpan`]. Inside:
//! `vector_clock`, `byte_shadow` and `heap_block_table` are the arithmetic, `checker` the rules, `step` and `machine_core` the machine, and the rest
//! is one file for each group of calls.

#![deny(unsafe_code)]

mod check;
mod code;
mod collective;
mod device;
mod fault_plan;
mod fault_text;
mod links;
mod machine;
mod machine_config;
mod memory;
mod planned_faults;
mod report;
mod run_log;
mod schedule;

pub use check::access_origin::{Action, Actor};
pub use check::finding::{Finding, FindingKind, Touching};
pub use check::undefined_value::UndefinedRange;
pub use code::code_engine::{CodeEngine, CompileError, CompiledModule, Relocate, SimVariable};
pub use code::host_kernel_library::{HostKernel, KernelLibrary};
pub use code::kernel::{KernelFault, KernelShape, LaunchContext, SimKernel, SimParameter, SimSignature};
pub use code::launch_readiness::LaunchReadiness;
pub use code::ptx::{KernelLog, PtxEngine};
pub use code::tensor_map::tensor_map_at;
pub use device::device_config::DeviceConfig;
pub use device::sim_device::SimDevice;
pub use fault_plan::{FaultPlan, PlannedFault};
pub use fault_text::FaultPlanError;
pub use links::{DeviceLink, Links};
pub use machine::Machine;
pub use machine_config::{MachineConfig, MachineLimits, Mode, SimChecks};
pub use memory::memory_view::{AccessCause, AccessFault, MemoryView};
pub use memory::scalar::Scalar;
pub use memory::thread_memory_access::MemoryPort;
pub use report::SimReport;
pub use run_log::TimelineSpan;
pub use schedule::cost_model::Costs;
pub use schedule::explore::{Exploration, ExploreCoverage, explore};
pub use schedule::scheduling_choice::Schedule;
pub use schedule::virtual_clock::VirtualClock;

/// What is checked while a kernel of PTX runs.
#[doc(inline)]
pub use kiln_ptx::exec::Checks as KernelChecks;
