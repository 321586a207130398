//! kiln on CUDA: [`kiln_driver::Driver`] over libcuda, and NVRTC.
//!
//! Nothing of CUDA is needed to build this crate or to start a program that contains it. The driver library is looked
//! for when it is first asked for, entry point by entry point, and one binary runs with every driver from CUDA 12.4
//! on. Where there is none, or one that cannot be used, the answer is a type that says which of the two it is.
//!
//! ```text
//!      kiln_driver::Driver                Absence │ StartFault
//!              │                               │
//!         CudaDevice  ── one file per group ── Library ── libcuda.so.1      Nvrtc ── libnvrtc.so
//!              │                                                              │
//!    slots: handle ─ pin ─ native object                            Surroundings: what is where
//!              │
//!          Context ── current on this thread? lost? forked? ── the door of every call
//! ```
//!
//! # What it keeps, and how
//!
//! - **No panic, no guess.** A missing library or symbol is an error that names it. Results are integers, so a code this
//!   crate has never heard of is just a number. An image is checked to end inside of its buffer before the driver's
//!   parser sees it.
//! - **Numbers say the order.** A submission is queued and numbered under one lock per stream, held for that call alone.
//!   Nothing else on the way of a launch is locked or allocated.
//! - **Once lost, always lost.** A sticky code is remembered with the submission that most likely caused it, and is the
//!   answer from then on; the driver is not asked again. What is left can still be given up, quietly.
//! - **No call waits but `wait`.** Waiting is asking, first eagerly, then with pauses, so it ends by its deadline and with
//!   the device. Calls inside the driver that wait for everything on the device, such as freeing memory, are put
//!   off until none of our streams has work.
//! - **Threads and processes.** Every call works from every thread, and makes the context current only if another one is.
//!   After `fork` the child is told so without a call into the driver. A process may end with everything alive.
//!
//! # Reading order
//!
//! [`Library`] and [`Absence`]; [`DeviceDescription`]; [`CudaDevice`], whose calls are those of the waist, one file for
//! each group; [`Surroundings`] and [`LibraryKind`]; [`mod@nvrtc`].
//!
//! # Environment
//!
//! `KILN_LIBCUDA` names the driver library instead of the usual search, and `KILN_NVRTC`, `KILN_CUBLAS` and so on
//! ([`LibraryKind::variable`]) name the others. `KILN_CUDA_INCLUDE` names the folder of the toolkit's headers.
//! `CUDA_VISIBLE_DEVICES` is the driver's own.
//!
//! # What it does not do
//!
//! It picks no device, pools no memory of its own, and orders nothing; those stand above the waist. It reads no PTX. It
//! cannot tell which kernel faulted when several were queued, only which is the oldest that may have. Copies between
//! two different devices are written by the book; they have been tried against a stand-in for the driver only.

mod absence;
mod api;
mod context;
mod convert;
mod description;
mod device;
mod driver;
mod event;
mod event_pool;
mod faults;
mod function;
mod graph;
mod graph_node;
mod host;
mod image;
#[cfg(feature = "cudarc-interop")]
pub mod interop;
mod journal;
mod launch;
mod libraries;
mod library;
mod linker;
mod loader;
mod mappings;
mod memory;
mod module;
mod native;
pub mod nvrtc;
mod open_error;
mod pages;
mod place;
mod pool;
mod process;
mod reservation;
mod rest;
mod stream;
mod submit;
mod transfer;
mod wait;

pub use absence::{Absence, Attempt, StartFault, Unavailable};
pub use description::DeviceDescription;
pub use device::CudaDevice;
pub use libraries::{Found, LibraryKind, LibraryVersion, NotFound, Origin, Surroundings, Tried};
pub use library::{Library, OLDEST_DRIVER};
pub use open_error::OpenError;
