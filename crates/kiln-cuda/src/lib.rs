//! kiln on CUDA: [`kiln_driver::Driver`] over libcuda, and NVRTC.
//!
//! Nothing of CUDA is needed to build this crate or to start a program that contains it. The driver library is looked
//! for when it is first asked for, entry point by entry point, and one binary runs with every driver from CUDA 12.4
//! on. Where there is none, or one that cannot be used, the answer is a type that says which of the two it is.
//!
//! ```text
//!      kiln_driver::Driver                DriverAbsence │ StartFault
//!              │                               │
//!         CudaDevice  ── one file per group ── Libcuda ── libcuda.so.1      Nvrtc ── libnvrtc.so
//!              │                                                              │
//!    slots: handle ─ pin ─ native object                            SearchEnvironment: what is where
//!              │
//!          Context ── current on this thread? lost? forked? ── entered by every call
//! ```
//!
//! # What it keeps, and how
//!
//! - **No panic, no guess.** A missing library or symbol is an error that names it. Results are integers, so a code this
//!   crate does not know is a number. An image is checked to end inside of its buffer before the driver's
//!   parser sees it.
//! - **Numbers say the order.** A submission is queued and numbered under one lock per stream, held for that call alone.
//!   Nothing else on the way of a launch is locked or allocated.
//! - **Once lost, always lost.** A sticky code is stored with the submission that most likely caused it, and every later call returns it without
//!   calling the driver. Objects can still be destroyed, without an error.
//! - **No call waits but `wait`.** It polls, first without a pause, then with pauses, so it ends by its deadline and when the device is lost. Calls of the
//!   driver that wait for all work on the device, such as freeing memory, are deferred until none of our streams has work.
//! - **Threads and processes.** Every call works from every thread, and makes the context current only if another one is.
//!   After `fork` the child is told so without a call into the driver. A process may end with everything alive.
//!
//! # Reading order
//!
//! [`Libcuda`] and [`DriverAbsence`]; [`DeviceDescription`]; [`CudaDevice`], whose calls are those of the driver interface, one file for
//! each group; [`HostFunctions`]; [`SearchEnvironment`] and [`LibraryKind`]; [`mod@nvrtc`].
//!
//! # Environment
//!
//! `KILN_LIBCUDA` names the driver library instead of the usual search, and `KILN_NVRTC`, `KILN_CUBLAS` and so on
//! ([`LibraryKind::variable`]) name the others. `KILN_CUDA_INCLUDE` names the folder of the toolkit's headers.
//! `CUDA_VISIBLE_DEVICES` is the driver's own.
//!
//! # What it does not do
//!
//! It chooses no device, pools no memory, and orders nothing; that happens above the driver interface. It reads no PTX. It
//! cannot tell which kernel faulted when several were queued, only which is the oldest that may have. Copies between
//! two different devices follow the documentation and were tested against a stand-in for the driver only.

mod command_dispatch;
mod context;
#[cfg_attr(not(unix), allow(dead_code, reason = "pages are not exported there"))]
mod convert;
mod cuda_absence;
#[cfg(feature = "cudarc-interop")]
pub mod cudarc_interop;
pub mod cupti;
mod deferred_frees;
mod device;
mod device_description;
mod driver;
mod dynamic_library;
mod event;
mod event_pool;
mod fork_count;
mod function;
mod graph;
mod graph_node;
mod host_functions;
mod host_memory;
mod host_wait;
mod image_check;
mod launch;
mod libcuda;
mod libcuda_search;
mod libcuda_symbols;
mod libraries;
mod located_bytes;
mod mapped_pages;
mod memory;
mod memory_pool;
mod module;
mod native_handle;
mod nvml;
pub mod nvrtc;
pub mod nvtx;
mod open_error;
mod operation;
#[cfg_attr(not(unix), allow(dead_code, reason = "pages are not exported there"))]
mod pages;
mod peer_access;
mod ptx_linker;
mod reservation;
mod sticky_error;
mod stream;
mod stream_progress;
mod tensor_map;
mod transfer;

pub use cuda_absence::{Attempt, DriverAbsence, StartFault, Unavailable};
pub use device::CudaDevice;
pub use device_description::DeviceDescription;
pub use host_functions::HostFunctions;
pub use libcuda::{Libcuda, OLDEST_DRIVER};
pub use libraries::{
    FoundLibrary, LibraryKind, LibraryOrigin, LibraryVersion, MissingLibrary, SearchEnvironment,
    SearchedPlace,
};
pub use nvml::{GpuFigures, Nvml, NvmlAbsence};
pub use open_error::OpenError;
