//! A range of bytes of a block, with a reference that keeps the block alive.

use std::ops::Range;
use std::sync::Arc;

use kiln_driver::{Access, DevicePlace};
use kiln_order::Use;

use super::element::Element;
use super::gpu_ref::GpuRef;
use crate::runtime::Block;

/// Bytes of a block, kept alive by this value, with the type of their elements forgotten.
#[derive(Clone)]
pub(crate) struct BlockRange {
    block: Arc<Block>,
    range: Range<u64>,
}

impl<T: Element> GpuRef<T> {
    /// Its bytes, held; none if it has no elements.
    pub(crate) fn held(&self) -> Option<BlockRange> {
        BlockRange::of(self.shared_block(), self.byte_range())
    }
}

impl BlockRange {
    /// Bytes of a block; none if the range is empty.
    pub(crate) fn of(block: &Arc<Block>, range: Range<u64>) -> Option<Self> {
        (!range.is_empty()).then(|| Self { block: block.clone(), range })
    }

    /// All bytes of a block.
    pub(crate) fn whole(block: Arc<Block>) -> Self {
        let range = 0..block.bytes();
        Self { block, range }
    }

    pub(crate) fn block(&self) -> &Arc<Block> {
        &self.block
    }

    pub(crate) fn range(&self) -> &Range<u64> {
        &self.range
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Where commands find the first byte.
    pub(crate) fn place(&self) -> Option<DevicePlace> {
        self.block.place(self.range.start)
    }

    /// Notes that all of the bytes were written anew.
    pub(crate) fn overwritten(&self) {
        self.block.history().lock().overwritten(&self.range);
    }

    /// Whether two share bytes.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.block, &other.block)
            && self.range.start < other.range.end
            && other.range.start < self.range.end
    }
}

/// A use of bytes of a block.
pub(crate) fn used(block: &Block, range: Range<u64>, access: Access) -> Use<'_> {
    Use { history: block.history(), range, access, argument: 0 }
}
