//! Workspace: memory that each use overwrites before it reads it.

use crate::buffer::GpuRef;
use crate::error::Result;

/// Says that what a buffer holds between two uses does not matter. If work that was writing it is lost with a worker process, the buffer holds zeros and can be used again,
/// where another one would be stale, and with it every graph that names it.
///
/// # Errors
/// A part of a block, since blocks are lost whole.
#[cfg_attr(
    not(all(feature = "isolate", target_os = "linux")),
    allow(
        unused_variables,
        clippy::unnecessary_wraps,
        reason = "a device in this process does not come back"
    )
)]
pub fn mark_workspace(buffer: &GpuRef<u8>) -> Result<()> {
    #[cfg(all(feature = "isolate", target_os = "linux"))]
    if !buffer.is_empty() {
        buffer.heal_with_zeros()?;
    }
    Ok(())
}
