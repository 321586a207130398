//! `MemoryBudget`: total, free and usable memory of a device.

use kiln_driver::MemoryInfo;
use kiln_mem::Accounting;

/// One byte in this many of the device's free memory is left alone: code, local memory and graphs are allocated by the
/// driver without asking.
const HEADROOM_DIVISOR: u64 = 16;

/// What a device had when it was asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryBudget {
    /// Bytes of the device.
    pub total_bytes: u64,
    /// Bytes that are free, other processes considered.
    pub free_bytes: u64,
    /// Bytes the runtime holds and could hand out at once.
    pub held_bytes: u64,
    /// Bytes a program may plan with: what the runtime holds, and the free ones less what the driver needs for itself.
    pub usable_bytes: u64,
}

impl MemoryBudget {
    pub(super) fn new(device: MemoryInfo, runtime: &Accounting) -> Self {
        let headroom = device.free_bytes / HEADROOM_DIVISOR;
        let held_bytes = runtime.free_bytes();
        Self {
            total_bytes: device.total_bytes,
            free_bytes: device.free_bytes,
            held_bytes,
            usable_bytes: (device.free_bytes - headroom).saturating_add(held_bytes),
        }
    }
}
