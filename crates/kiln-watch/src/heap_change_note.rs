//! What the heap of a device, or the driver's pool, did.

use kiln_trace::{HeapRecord, plain_text};
use serde::Serialize;

/// What the heap of a device, or the driver's pool, did.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct HeapChangeNote {
    /// The device.
    pub device: u32,
    /// What it did, in words.
    pub what: &'static str,
    /// With how many bytes.
    pub bytes: u64,
    /// The tag of the allocation for which it did that; empty if none is known.
    pub tag: String,
    /// The line that asked for that allocation.
    pub line: Option<String>,
    /// When.
    pub time_ns: u64,
}

impl HeapChangeNote {
    pub(crate) fn of(heap: &HeapRecord<'_>) -> Self {
        Self {
            device: heap.device,
            what: heap.change.words(),
            bytes: heap.bytes,
            tag: plain_text(heap.tag).into_owned(),
            line: heap.line.map(|line| line.to_string()),
            time_ns: heap.time_ns,
        }
    }
}
