//! The protocol between client and worker: shared memory, socket and messages.
//!
//! - [`socket`]: a pair of connected sockets for the handshake and for descriptors.
//! - [`memory_file`]: memory that both processes map.
//! - [`segment`]: the layout of the shared memory segment; [`ring`], [`shared_condvar`] and [`progress_cells`] are its parts.
//! - [`wire`]: the encoding of every message.
//! - [`environment`]: how a process knows that it was started as a worker.
//! - [`violation`]: the error for a peer that breaks these rules.

pub(crate) mod device_spec;
#[cfg(target_os = "linux")]
pub(crate) mod environment;
#[cfg(target_os = "linux")]
pub(crate) mod memory_file;
#[cfg(target_os = "linux")]
pub(crate) mod progress_cells;
#[cfg(target_os = "linux")]
pub(crate) mod ring;
#[cfg(target_os = "linux")]
pub(crate) mod segment;
#[cfg(target_os = "linux")]
pub(crate) mod shared_condvar;
#[cfg(target_os = "linux")]
pub(crate) mod socket;
pub(crate) mod violation;
#[cfg(target_os = "linux")]
pub(crate) mod wire;
