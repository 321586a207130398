//! The client process: the driver that programs call, and its connection to one worker.
//!
//! [`proxy::DeviceProxy`] has a method for every call of the driver interface; each group of calls has its own file. A call is checked against
//! [`object_tables`], encoded, and sent through the [`connection`] to the worker in use. Nothing here starts, watches or replaces a
//! worker: that is [`supervise`](crate::supervise), which replaces a lost connection.

#[cfg(target_os = "linux")]
pub(crate) mod address_proposal;
#[cfg(target_os = "linux")]
pub(crate) mod client_state;
#[cfg(target_os = "linux")]
pub(crate) mod code;
#[cfg(target_os = "linux")]
mod command_encoder;
#[cfg(target_os = "linux")]
pub(crate) mod connection;
pub(crate) mod loss_cause;
#[cfg(target_os = "linux")]
pub(crate) mod memory;
#[cfg(target_os = "linux")]
pub(crate) mod object_tables;
#[cfg(target_os = "linux")]
pub(crate) mod objects;
#[cfg(target_os = "linux")]
mod pages;
#[cfg(target_os = "linux")]
mod protection;
#[cfg(target_os = "linux")]
pub(crate) mod proxy;
#[cfg(target_os = "linux")]
pub(crate) mod standby_hook;
#[cfg(target_os = "linux")]
mod stream;
#[cfg(target_os = "linux")]
pub(crate) mod stream_table;
#[cfg(target_os = "linux")]
pub(crate) mod work_times;
