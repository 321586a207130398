//! How a heap is set up.

use crate::budget::Budget;
use crate::reclaim::PressurePolicy;

use super::spare_memory::Spare;

/// What a heap may do. The default is a heap that takes what the device has, waits for nothing and exports nothing.
#[derive(Clone, Debug, Default)]
pub struct HeapConfig {
    /// Memory taken from the device is charged here; none is only limited by the device.
    pub budget: Option<Budget>,
    /// What may be done when memory is short.
    pub pressure: PressurePolicy,
    /// What the remaps that are kept mapped may cost the host, in bytes; by default a sixteenth of the device's memory, and 1 GiB at most. A
    /// mapped frame costs the host about 24 KiB, whatever its size; [`Heap::mapping_host_bytes`](crate::Heap::mapping_host_bytes) says what all of
    /// them cost. A program that repeats itself, but needs more remaps than fit, maps them again in every run, until the heap holds more spare
    /// memory instead (see [`Spare`]). The design page `docs/design/0011-remapping.md` has the figures.
    pub mapping_host_bytes: Option<u64>,
    /// What may be held besides what is in use; only a heap over pages has a choice.
    pub spare: Spare,
    /// Whether pages can be handed to another process; [`Heap::page_parts`](crate::Heap::page_parts) says which ones.
    pub exportable: bool,
}
