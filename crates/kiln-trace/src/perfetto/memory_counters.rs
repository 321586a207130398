//! Bytes in use, by device and tag.

use std::collections::HashMap;

/// What is in use. A free of memory that was allocated before the recording began does not take it below nothing.
#[derive(Default)]
pub(super) struct MemoryCounters {
    bytes: HashMap<(u32, u32), u64>,
}

impl MemoryCounters {
    /// Memory is given out; what is in use since.
    pub(super) fn allocated(&mut self, device: u32, tag: u32, bytes: u64) -> u64 {
        let used = self.bytes.entry((device, tag)).or_default();
        *used = used.saturating_add(bytes);
        *used
    }

    /// Memory is given back; what is in use since.
    pub(super) fn freed(&mut self, device: u32, tag: u32, bytes: u64) -> u64 {
        let used = self.bytes.entry((device, tag)).or_default();
        *used = used.saturating_sub(bytes);
        *used
    }
}
