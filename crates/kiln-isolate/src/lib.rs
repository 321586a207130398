//! A device in a worker process.
//!
//! After one illegal access a CUDA context returns only the fault, and nothing inside the process repairs it. So the context can live in another
//! process: [`IsolatedDevice`] is a [`kiln_driver::Driver`] whose calls are carried out by a worker process, over CUDA or the simulator. The
//! client holds the device's physical memory by file descriptors. When the worker is lost, another worker maps the same memory at the same
//! addresses, and the program continues.
//!
//! # Which code runs in which process
//!
//! ```text
//!   client process                                                              worker process
//!  ┌──────────────────────────────────────┐                                   ┌──────────────────────────────────┐
//!  │ supervise/                           │     starts, watches, kills        │ worker/                          │
//!  │   IsolatedDevice                     │ ────────────────────────────────► │   worker_entry()                 │
//!  │   thread: WorkerSupervisor           │                                   │   thread: serves the ring  ──────┼──► CUDA or
//!  │   thread: StandbySync                │                                   │   thread: queries progress ──────┼──► simulator
//!  │   takeover: rebuilds a new worker    │                                   │   thread: ends with the client   │
//!  │     │ uses                           │  ring: requests, no system call   │     │ uses                       │
//!  │     ▼                                │ ────────────────────────────────► │     │                            │
//!  │ client/                              │  one answer at a time             │     │                            │
//!  │   DeviceProxy: checks every call     │ ◄──────────────────────────────── │     │                            │
//!  │   Link: connection to one worker     │  progress of streams, faults      │     │                            │
//!  │     │ uses                           │ ◄──────────────────────────────── │     │                            │
//!  │     ▼                                │                                   │     ▼                            │
//!  │ protocol/                            │  socket: handshake, descriptors   │ protocol/                        │
//!  │   segment, ring, socket, wire ═══════╪═══════════════════════════════════╪═══ the same code                 │
//!  │                                      │                                   │                                  │
//!  │ host blocks ═════════════════════════╪══ memory both processes map ══════╪═══ registered with the driver    │
//!  │ descriptors of pages                 │                                   │ pages, imported and mapped       │
//!  └──────────────────────────────────────┘                                   └──────────────────────────────────┘
//! ```
//!
//! `client` and `worker` import `protocol` and not each other; `supervise` imports `client` and `protocol`.
//!
//! # The contract
//!
//! - An isolated device obeys the laws of the driver interface that CUDA and the simulator obey. The client knows handles, ranges, mappings and shapes, so it
//!   refuses a wrong call at once. What only the worker's driver can refuse is returned later, by a wait or by `progress`, with its submission.
//! - Submitting, creating and destroying streams and events, freeing, and asking for progress make no system call while the worker polls, and wait only
//!   if the ring is full. All other calls wait for an answer of the worker.
//! - A wait reads shared memory and sleeps only if the work is not done. A poll only reads: it has the worker query the stream, and a later poll
//!   sees the result.
//! - Both processes map host blocks, so copies need no extra copy.
//! - A worker ends with its client, and a client notices at once that its worker has ended: every call and every wait returns the cause.
//! - The client trusts nothing a worker writes: lengths, ids and counts are checked, and a worker that breaks the protocol is lost
//!   ([`LossCause::Violation`]).
//! - [`IsolatedDevice::take_over`] makes the client's objects again in another worker: handles stay valid, pages keep their contents and addresses.
//!   [`Takeover`] reports what was unfinished, lost and kept, and how long each phase took.
//!
//! # In a program
//!
//! Call [`worker_entry`] first in `main`; nothing has to be installed beside the program. In tests, call it in a test and use
//! [`WorkerEntry::Test`].
//!
//! # Contents of memory after a takeover
//!
//! The driver interface knows no accesses, so a takeover keeps all pages. The caller of `take_over` knows which blocks unfinished work was to write: it compares
//! [`Takeover::unfinished`] with the last write of each block. A foreign kernel that faulted may also have written outside of its buffers. Memory that is
//! only read can be protected from that: map it [`Protection::Read`](kiln_driver::Protection) at all of its addresses
//! ([`IsolatedDevice::protect_pages`]), so that the write faults and changes nothing, or compare its [`Checksum`].
//!
//! # Reading order
//!
//! [`IsolationConfig`], [`DeviceSpec`], [`WorkerEntry`], [`IsolatedDevice`], [`Takeover`], [`LossCause`], [`WorkerEvent`]; [`worker_entry`] and
//! [`Worker`]; [`Checksum`]; [`IsolationSupport`]; [`WorkerTime`]. Inside: `protocol`, `client`, `worker`, `supervise`.
//!
//! # Systems
//!
//! Worker processes need Linux: memory files, process descriptors, and descriptors sent through sockets. Elsewhere this crate compiles, and
//! [`IsolatedDevice::open`] returns [`WorkerStartError::Unsupported`].
//!
//! # What it does not do
//!
//! It takes no streams, events or memory of other libraries, returns no native handles and registers no memory of this process: they are not valid in
//! the worker. It does not copy between two isolated devices. It does not sandbox the worker, which runs as the same user. The simulator in a
//! worker does not see what the client does to host blocks.

mod checksum;
mod client;
#[cfg(all(feature = "fuzzing", target_os = "linux"))]
#[doc(hidden)]
pub mod fuzz_entry_points;
mod protocol;
#[cfg(all(test, feature = "sim", target_os = "linux"))]
mod protocol_violation_tests;
mod supervise;
#[cfg(target_os = "linux")]
mod worker;

pub use checksum::{Checksum, ChecksumRequest};
pub use client::loss_cause::LossCause;
#[cfg(target_os = "linux")]
pub use client::work_times::{TimesFlush, WorkerTime};
pub use protocol::device_spec::DeviceSpec;
pub use protocol::protocol_error::ProtocolViolation;
pub use supervise::config::{IsolationConfig, WorkerEntry};
#[cfg(target_os = "linux")]
pub use supervise::isolated_device::IsolatedDevice;
#[cfg(target_os = "linux")]
pub use supervise::isolation_support::IsolationSupport;
pub use supervise::object_counts::ObjectCounts;
pub use supervise::restart_policy::RestartPolicy;
pub use supervise::start_error::WorkerStartError;
pub use supervise::takeover::{Takeover, TakeoverError, TakeoverPhases, UnfinishedStream};
#[cfg(not(target_os = "linux"))]
pub use supervise::unsupported_platform::{IsolatedDevice, worker_entry};
pub use supervise::worker_event::WorkerEvent;
#[cfg(target_os = "linux")]
pub use supervise::worker_process::WorkerProcess;
#[cfg(target_os = "linux")]
pub use worker::opened_device::{OpenFailure, OpenedDevice};
#[cfg(target_os = "linux")]
pub use worker::{Worker, WorkerStep, worker_entry};
