//! A device in a process of its own.
//!
//! After one illegal access a CUDA context answers nothing but the fault, and nothing inside the process mends that. So
//! the context can live elsewhere: [`IsolatedDevice`] is a [`kiln_driver::Driver`] whose calls are carried out by a
//! worker process, over CUDA or the simulator alike. The physical memory of the device is held by descriptors on this
//! side. When the worker is gone, another one maps the same memory at the same addresses and the program goes on.
//!
//! ```text
//!        client process                                              worker process
//!   ┌──────────────────────┐      commands (ring, no system call)  ┌─────────────────────┐
//!   │ IsolatedDevice       │ ────────────────────────────────────► │ one thread: does    │
//!   │   handles, ranges,   │      one answer at a time             │ what the ring says  │──► CUDA or
//!   │   shapes are checked │ ◄──────────────────────────────────── │                     │    simulator
//!   │   here               │      how far streams are, faults      │ one thread: looks   │
//!   │                      │ ◄──────────────────────────────────── │ at what is awaited  │
//!   │ host blocks ═════════╪═══════ the same memory ═══════════════╪═ registered         │
//!   │ descriptors of pages │      socket: greeting, descriptors    │ pages, mapped       │
//!   └──────────────────────┘                                       └─────────────────────┘
//!            ▲ one thread looks after workers: starts, notices the end, ends
//! ```
//!
//! # The contract
//!
//! - It keeps the laws of the waist that CUDA and the simulator keep. What a driver refuses is refused at the call,
//!   because handles, ranges, mappings and shapes are known on this side; what the worker's driver refuses
//!   all the same arrives later, at a wait or at `progress`, with its submission.
//! - Submitting, making and destroying streams and events, freeing and asking for progress make no system call while
//!   the worker is awake, and wait for nothing unless the ring is full. Everything else is a question with an answer.
//! - A wait reads shared memory; it sleeps only if that says "not yet". A poll only reads: it has the worker look, and
//!   a later poll sees what it found.
//! - Host blocks are memory both processes map, so a copy costs no extra copy.
//! - A worker dies with its client, whatever either is doing, and a client notices at once that its worker is gone: every
//!   call and every wait ends with the cause.
//! - Nothing a worker writes is trusted: lengths, numbers and counts are held against what can be true, and a worker
//!   that lies is a worker that is gone ([`Cause::Violation`]).
//! - [`IsolatedDevice::take_over`] makes everything again in another worker that can be: handles stay valid, pages keep
//!   their contents and addresses. [`Takeover`] says what was unfinished, lost and kept, and how long each phase took.
//!
//! # In a program
//!
//! One line in `main`, [`worker_entry`]; nothing else has to be shipped. In tests, a test that calls it and
//! [`Entry::Test`].
//!
//! # What decides about contents
//!
//! The waist knows no accesses, so a takeover here keeps all pages. Which of them hold what unfinished work was to write is
//! known where accesses are declared: whoever calls `take_over` holds [`Takeover::unfinished`] against the stamps of its
//! blocks, and declares those lost whose last write lies beyond. A foreign kernel that faulted may have written elsewhere,
//! too. Memory that is only read can be guarded against that: mapped [`Protection::Read`](kiln_driver::Protection)
//! everywhere ([`IsolatedDevice::protect_pages`]), so that the write is a fault and changes nothing, or summed by [`Checksum`],
//! so that it is found.
//!
//! # Reading order
//!
//! [`Config`], [`Backend`], [`Entry`], [`IsolatedDevice`], [`Takeover`], [`Cause`], [`News`]; [`worker_entry`] and
//! [`Worker`]; [`Checksum`]; [`Readiness`]. Inside: `area` says what the shared memory holds, `ring` and `bell` how it is used, `wire` what travels;
//! `link` is the client's end, `worker` the other; `supervisor` looks after processes, `takeover` replaces them,
//! `outfit` gives a worker what the client has, and `preparation` does so ahead of time.
//!
//! # What it does not do
//!
//! It takes no streams, events or memory of other libraries, gives out no native handles and registers no memory of this
//! process: those mean nothing on the other side. It does not copy between two isolated devices. It does not sandbox the
//! worker, which runs as the same user. The simulator in a worker does not see what this process does to host blocks.

mod addresses;
mod area;
mod awake;
mod backend;
mod bell;
mod cause;
mod cells;
mod checksum;
mod code;
mod config;
mod device;
mod driver;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod inventory;
mod launcher;
mod link;
#[cfg(all(test, feature = "sim"))]
mod lying;
mod memory;
mod news;
mod objects;
mod outfit;
mod pages;
mod patience;
mod preparation;
mod process;
mod protection;
mod readiness;
mod restarts;
mod ring;
mod shared;
mod shared_file;
mod socket;
mod start_error;
mod stream;
mod streams;
mod supervisor;
mod takeover;
mod tally;
mod translate;
mod violation;
mod watchdog;
mod wire;
mod worker;

pub use backend::{Backend, OpenFailure, Opened};
pub use cause::Cause;
pub use checksum::{Checksum, Summed};
pub use config::{Config, Entry};
pub use device::IsolatedDevice;
pub use news::News;
pub use readiness::Readiness;
pub use restarts::RestartPolicy;
pub use start_error::StartError;
pub use takeover::{Phases, Takeover, TakeoverError, Unfinished};
pub use tally::Tally;
pub use violation::Violation;
pub use worker::{Step, Worker, worker_entry};
