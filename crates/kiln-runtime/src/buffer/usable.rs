//! Whether work of a runtime can use a buffer or a stream, and whether it takes work at all, asked before the work is queued.

use super::element::Element;
use super::gpu_ref::GpuRef;
use crate::error::{Error, Misuse, Result};
use crate::runtime::{DeviceRuntime, Stream};

/// Refuses a buffer of another runtime, and one that was lost with its context. A crate that queues several commands for one call asks this of all buffers before
/// the first command, so that a refused call changes nothing.
///
/// # Errors
/// Why the buffer cannot be used.
pub fn check_usable<T: Element>(buffer: &GpuRef<T>, runtime: &DeviceRuntime) -> Result<()> {
    buffer.check_runtime(runtime.inner())
}

/// Refuses a stream of another runtime.
///
/// # Errors
/// [`Misuse::ForeignStream`].
pub fn check_stream(stream: &Stream, runtime: &DeviceRuntime) -> Result<()> {
    match stream.belongs_to(runtime.inner()) {
        true => Ok(()),
        false => Err(Error::new(Misuse::ForeignStream { stream: stream.id().to_string() })),
    }
}

/// Whether two are one runtime: clones of each other.
pub fn is_same_runtime(one: &DeviceRuntime, other: &DeviceRuntime) -> bool {
    std::sync::Arc::ptr_eq(one.inner(), other.inner())
}

/// Refuses a runtime that takes no work: its device is lost, or it was shut down.
///
/// # Errors
/// Why it takes none.
pub fn check_ready(runtime: &DeviceRuntime) -> Result<()> {
    runtime.inner().check_ready()
}
