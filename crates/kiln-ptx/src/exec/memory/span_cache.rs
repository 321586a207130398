//! The spans a block of threads used last.

use super::generic_address::{HEAP, WORKSPACE};
use super::global::{GlobalMemory, Span};

/// Spans remembered; kernels rarely walk through more arrays at once.
const ENTRIES: usize = 8;

/// Finds spans, asking the memory only for those not seen lately.
pub(crate) struct SpanCache<'m> {
    memory: &'m dyn GlobalMemory,
    heap: &'m dyn GlobalMemory,
    workspace: Option<&'m dyn GlobalMemory>,
    entries: [Option<Span<'m>>; ENTRIES],
    next: usize,
}

impl<'m> SpanCache<'m> {
    pub(crate) fn new(
        memory: &'m dyn GlobalMemory,
        heap: &'m dyn GlobalMemory,
        workspace: Option<&'m dyn GlobalMemory>,
    ) -> Self {
        Self { memory, heap, workspace, entries: [None; ENTRIES], next: 0 }
    }

    /// The span that holds an address.
    #[inline]
    pub(crate) fn find(&mut self, address: u64) -> Option<Span<'m>> {
        for entry in self.entries.iter().flatten() {
            if address >= entry.start && address < entry.end {
                return Some(*entry);
            }
        }
        self.look_up(address)
    }

    #[cold]
    fn look_up(&mut self, address: u64) -> Option<Span<'m>> {
        let span = self.owner(address).span(address)?;
        // Heap blocks may be freed while the launch runs, so they are looked up each time.
        if !is_heap(address) {
            self.entries[self.next] = Some(span);
            self.next = (self.next + 1) % ENTRIES;
        }
        Some(span)
    }

    /// Who knows about an address.
    pub(crate) fn owner(&self, address: u64) -> &'m dyn GlobalMemory {
        if is_heap(address) {
            return self.heap;
        }
        match self.workspace {
            Some(workspace) if address & !0xffff_ffff == WORKSPACE => workspace,
            _ => self.memory,
        }
    }
}

fn is_heap(address: u64) -> bool {
    address & !0xffff_ffff == HEAP
}
