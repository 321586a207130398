//! The protocol between client and worker: shared memory, socket and messages.
//!
//! - [`socket`]: a pair of connected sockets for the handshake and for descriptors.
//! - [`memory_file`]: memory that both processes map.
//! - [`segment`]: the layout of the shared memory segment; [`ring`], [`event_count`] and [`progress_cells`] are its parts.
//! - [`wire`]: the encoding of every message.
//! - [`environment`]: how a process knows that it was started as a worker.
//! - [`protocol_error`]: the error for a peer that breaks these rules.

pub(crate) mod device_spec;
#[cfg(target_os = "linux")]
pub(crate) mod environment;
#[cfg(target_os = "linux")]
pub(crate) mod futex_wait;
#[cfg(target_os = "linux")]
pub(crate) mod memory_file;
#[cfg(target_os = "linux")]
pub(crate) mod progress_cells;
pub(crate) mod protocol_error;
#[cfg(target_os = "linux")]
pub(crate) mod ring;
#[cfg(target_os = "linux")]
pub(crate) mod segment;
#[cfg(target_os = "linux")]
pub(crate) mod socket;
#[cfg(target_os = "linux")]
pub(crate) mod wire;
