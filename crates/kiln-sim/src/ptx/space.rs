//! The machine's address map as the executor of PTX sees it.

use kiln_driver::Protection;
use kiln_ptx::exec::{Memory, Miss, MissKind, Span};

use super::cells::SegmentCells;
use crate::memory_view::MemoryView;

/// One launch's view of device memory.
pub(super) struct AddressSpace<'v> {
    view: &'v MemoryView,
    cells: Vec<SegmentCells<'v>>,
}

impl<'v> AddressSpace<'v> {
    pub(super) fn new(view: &'v MemoryView) -> Self {
        let segments = view.map().segments().iter().enumerate();
        let cells = segments
            .map(|(at, segment)| SegmentCells {
                bytes: &segment.physical.bytes,
                touched: view.touched_in(at),
                offset: segment.offset,
                len: segment.end - segment.start,
                alone: view.is_alone(),
            })
            .collect();
        Self { view, cells }
    }
}

impl Memory for AddressSpace<'_> {
    fn span(&self, address: u64) -> Option<Span<'_>> {
        let at = self.view.map().index_of(address)?;
        let segment = &self.view.map().segments()[at];
        Some(Span {
            start: segment.start,
            end: segment.end,
            origin: segment.start,
            writable: segment.protection == Protection::ReadWrite,
            cells: &self.cells[at],
        })
    }

    fn miss(&self, address: u64, _: u64) -> Miss {
        // Whether a block was freed here is known to the machine, which says so beside this.
        let near = match self.view.map().nearest_before(address) {
            Some(segment) => {
                let region = &segment.region;
                let end = region.address.saturating_add(region.bytes);
                format!(
                    "{} bytes behind the end of {}, which has {} bytes",
                    address.saturating_sub(end),
                    region.name,
                    region.bytes
                )
            }
            None => "below every block".to_owned(),
        };
        Miss { kind: MissKind::OutOfBounds, near }
    }
}
