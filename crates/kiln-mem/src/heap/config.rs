//! How a heap is set up.

use crate::budget::Budget;
use crate::ladder::Pressure;

use super::spare::Spare;

/// What a heap may do. The default is a heap that takes what the device has, waits for nothing and exports nothing.
#[derive(Clone, Debug, Default)]
pub struct HeapConfig {
    /// Memory taken from the device is charged here; none is only limited by the device.
    pub budget: Option<Budget>,
    /// What may be done when memory is short.
    pub pressure: Pressure,
    /// What the rows of frames that are kept mapped may cost the host, in bytes; none is a sixteenth of the device's memory. A
    /// mapped frame costs the host about 24 KiB, whatever its size, and [`Heap::mapping_host_bytes`](crate::Heap::mapping_host_bytes) says how much
    /// they all do. With less, a program that repeats itself after longer than so many rows maps them again, or soon holds
    /// more beside what is in use (see [`Spare`]).
    pub mapping_host_bytes: Option<u64>,
    /// What may be held beside what is in use; only a heap over pages has a choice.
    pub spare: Spare,
    /// Whether pages can be handed to another process; [`Heap::page_parts`](crate::Heap::page_parts) says which ones.
    pub exportable: bool,
}
