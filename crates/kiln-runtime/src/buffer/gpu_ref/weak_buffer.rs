//! Buffers that are remembered and not kept.

use std::marker::PhantomData;
use std::sync::{Arc, Weak};

use super::GpuRef;
use crate::buffer::element::Element;
use crate::runtime::Block;

/// A buffer that is remembered: its memory is freed when the last handle goes, and then it is none any more.
#[derive(Clone, Debug)]
pub struct WeakBuffer {
    block: Weak<Block>,
    offset: u64,
    bytes: usize,
}

impl WeakBuffer {
    /// Remembers a buffer.
    pub fn new(buffer: &GpuRef<u8>) -> Self {
        Self { block: Arc::downgrade(&buffer.block), offset: buffer.offset, bytes: buffer.len }
    }

    /// The buffer, if it is there.
    pub fn upgrade(&self) -> Option<GpuRef<u8>> {
        let block = self.block.upgrade()?;
        Some(GpuRef { block, offset: self.offset, len: self.bytes, element: PhantomData })
    }
}

/// Whether a buffer is all of its block, so that overwriting it makes the block usable after its contents were lost.
pub fn is_whole_block<T: Element>(buffer: &GpuRef<T>) -> bool {
    buffer.is_whole_block()
}
