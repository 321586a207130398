//! The machine's address map as the executor of PTX sees it.

use std::ops::Range;

use kiln_driver::{Access, Protection};
use kiln_ptx::exec::{AccessKind, Declared, GlobalMemory, Miss, MissKind, Span, byte_count, past_end};

use super::segment_bytes::SegmentCells;
use crate::check::declared_memory::Declaration;
use crate::memory::memory_view::MemoryView;

/// One launch's view of device memory.
pub(super) struct AddressSpace<'v> {
    view: &'v MemoryView,
    cells: Vec<SegmentCells<'v>>,
}

impl<'v> AddressSpace<'v> {
    pub(super) fn new(view: &'v MemoryView) -> Self {
        let segments = view.map().segments().iter().enumerate();
        let cells = segments.map(|(at, segment)| SegmentCells::new(view, at, segment)).collect();
        Self { view, cells }
    }

    fn part(&self, at: usize, range: Range<u64>, declared: Declared) -> Span<'_> {
        let segment = &self.view.map().segments()[at];
        Span {
            start: range.start,
            end: range.end,
            origin: segment.start,
            writable: segment.protection == Protection::ReadWrite,
            declared,
            cells: &self.cells[at],
        }
    }
}

impl GlobalMemory for AddressSpace<'_> {
    fn span(&self, address: u64) -> Option<Span<'_>> {
        let at = self.view.map().index_of(address)?;
        let segment = &self.view.map().segments()[at];
        let (range, declaration) = self.view.declared_around(address, segment);
        let declared = match declaration {
            Declaration::ReadWrite => Declared::ReadWrite,
            Declaration::Read => Declared::Read,
            Declaration::Nothing => Declared::Nothing,
        };
        Some(self.part(at, range, declared))
    }

    fn mapped(&self, address: u64) -> Option<Span<'_>> {
        let at = self.view.map().index_of(address)?;
        let segment = &self.view.map().segments()[at];
        Some(self.part(at, segment.start..segment.end, Declared::Nothing))
    }

    fn undeclared(&self, address: u64, bytes: u64, access: AccessKind) -> Option<String> {
        let access = if access == AccessKind::Read { Access::Read } else { Access::ReadWrite };
        self.view.footprint()?.explain(address..address.saturating_add(bytes), access)
    }

    fn miss(&self, address: u64, bytes: u64) -> Miss {
        if let Some(footprint) = self.view.footprint() {
            let near = footprint.near(address..address.saturating_add(bytes), address);
            return Miss { kind: MissKind::OutOfBounds, near };
        }
        // Whether a block was freed here is known to the machine, which says so beside this.
        let near = match self.view.map().nearest_before(address) {
            Some(segment) => {
                let region = &segment.region;
                let end = region.address.saturating_add(region.bytes);
                let place = past_end(address.saturating_sub(end));
                format!("{place} of {}, which has {}", region.name, byte_count(region.bytes))
            }
            None => "below every block".to_owned(),
        };
        Miss { kind: MissKind::OutOfBounds, near }
    }
}
