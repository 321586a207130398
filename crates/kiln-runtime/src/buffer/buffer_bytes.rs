//! The bytes of a buffer, borrowed.
//!
//! A library call knows its operands as bytes. A handle of bytes would hold the block once more, which is two locked instructions for each operand; a borrow
//! is a copy of three words.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use kiln_driver::{Access, DeviceAddress};
use kiln_order::{StreamKey, Use};

use super::block_range::BlockRange;
use super::element::Element;
use super::gpu_ref::GpuRef;
use crate::error::Result;
use crate::runtime::{Block, DeviceRuntime};

/// Bytes of a buffer, borrowed from it, with the type of its elements forgotten.
#[derive(Clone, Copy)]
pub struct BufferBytes<'a> {
    block: &'a Arc<Block>,
    offset: u64,
    bytes: u64,
}

impl<'a> BufferBytes<'a> {
    /// All bytes of a buffer.
    #[inline]
    pub fn of<T: Element>(buffer: &'a GpuRef<T>) -> Self {
        let range = buffer.byte_range();
        Self { block: buffer.shared_block(), offset: range.start, bytes: range.end - range.start }
    }

    /// Bytes that are held.
    pub(crate) fn held_by(held: &'a BlockRange) -> Self {
        Self { block: held.block(), offset: held.range().start, bytes: held.bytes() }
    }

    /// So many of them from the start, or all if there are fewer.
    #[inline]
    #[must_use]
    pub fn first(self, bytes: u64) -> Self {
        Self { bytes: self.bytes.min(bytes), ..self }
    }

    /// How many.
    #[inline]
    pub fn len(&self) -> u64 {
        self.bytes
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// How many bytes of the allocation lie before the first.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Where kernels find the first.
    #[inline]
    pub fn address(&self) -> DeviceAddress {
        self.block.address(self.offset)
    }

    /// Whether two share bytes.
    #[inline]
    pub fn overlaps(&self, other: &Self) -> bool {
        let (own, others) = (self.range(), other.range());
        let are_some = !own.is_empty() && !others.is_empty();
        are_some && Arc::ptr_eq(self.block, other.block) && own.start < others.end && others.start < own.end
    }

    /// Whether it is memory of that runtime, or of a clone of it.
    pub fn belongs_to(&self, runtime: &DeviceRuntime) -> bool {
        self.block.runtime().is_ok_and(|own| Arc::ptr_eq(&own, runtime.inner()))
    }

    /// Refuses memory of another runtime, and what was lost with its context.
    ///
    /// # Errors
    /// Why the memory cannot be used.
    pub fn check_usable(&self, runtime: &DeviceRuntime) -> Result<()> {
        self.block.check_runtime(runtime.inner())
    }

    /// Where its work goes when nothing else is said, on a runtime that it belongs to.
    #[inline]
    pub fn home(&self, runtime: &DeviceRuntime) -> StreamKey {
        self.block.home(runtime.inner()).key
    }

    /// A handle of the same bytes, which holds them.
    pub fn to_buffer(&self) -> GpuRef<u8> {
        GpuRef::part_of(self.block.clone(), self.offset, self.bytes as usize)
    }

    #[inline(always)]
    pub(crate) fn block(&self) -> &'a Block {
        self.block
    }

    #[inline(always)]
    pub(crate) fn used(&self, access: Access, argument: u16) -> Use<'a> {
        Use { history: self.block().history(), range: self.range(), access, argument }
    }

    /// The same, held; none if there are no bytes.
    pub(crate) fn held(&self) -> Option<BlockRange> {
        BlockRange::of(self.block, self.range())
    }

    #[inline(always)]
    fn range(&self) -> Range<u64> {
        self.offset..self.offset + self.bytes
    }
}

impl fmt::Debug for BufferBytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes at byte {} of {}", self.bytes, self.offset, self.block.id())
    }
}
