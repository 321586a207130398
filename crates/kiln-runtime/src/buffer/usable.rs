//! Whether work of a runtime can use a buffer, asked before the work is queued.

use super::element::Element;
use super::gpu_ref::GpuRef;
use crate::error::Result;
use crate::runtime::DeviceRuntime;

/// Refuses a buffer of another runtime, and one that was lost with its context. A crate that queues several commands for one call asks this of all buffers before
/// the first command, so that a refused call changes nothing.
///
/// # Errors
/// Why the buffer cannot be used.
pub fn check_usable<T: Element>(buffer: &GpuRef<T>, runtime: &DeviceRuntime) -> Result<()> {
    buffer.check_runtime(runtime.inner())
}
