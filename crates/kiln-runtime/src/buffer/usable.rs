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

/// The runtime that a buffer belongs to; none once it is gone.
pub fn runtime_of<T: Element>(buffer: &GpuRef<T>) -> Option<DeviceRuntime> {
    buffer.block().runtime().ok().map(DeviceRuntime::from_inner)
}

/// The fault of a device that is lost for good, with which device it is and what to do next. Where the error says that already, it stays.
pub fn told_of_loss(runtime: &DeviceRuntime, error: Error) -> Error {
    runtime.inner().told_of_loss(error)
}

/// Refuses a runtime that takes no work: its device is lost, or it was shut down.
///
/// # Errors
/// Which device takes none, why, and what to do.
pub fn check_ready(runtime: &DeviceRuntime) -> Result<()> {
    runtime.inner().check_ready()
}
