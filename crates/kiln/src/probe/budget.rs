//! How much memory a program may plan with.

use kiln_driver::MemoryInfo;

/// One byte in this many of the free memory is left alone: code, local memory and graphs are allocated by the driver
/// without asking.
const HEADROOM_DIVISOR: u64 = 16;

/// What a device had when it was asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryBudget {
    /// Bytes of the device.
    pub total_bytes: u64,
    /// Bytes nobody holds, other processes included.
    pub free_bytes: u64,
    /// Bytes a program may plan with: the free ones less what the driver needs for itself.
    pub usable_bytes: u64,
}

impl From<MemoryInfo> for MemoryBudget {
    fn from(info: MemoryInfo) -> Self {
        Self {
            total_bytes: info.total_bytes,
            free_bytes: info.free_bytes,
            usable_bytes: info.free_bytes - info.free_bytes / HEADROOM_DIVISOR,
        }
    }
}
