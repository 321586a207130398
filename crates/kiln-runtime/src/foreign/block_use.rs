//! A buffer, and whether other libraries' work reads or writes it.

use std::fmt;
use std::ops::Range;

use kiln_driver::Access;
use kiln_order::Use;

use crate::buffer::{Element, GpuRef};
use crate::runtime::Block;

/// A buffer that work of the caller's own will use, with the access. Made by [`GpuRef::used_as`].
#[derive(Clone)]
pub struct BlockUse<'a> {
    pub(super) block: &'a Block,
    pub(super) range: Range<u64>,
    pub(super) access: Access,
}

impl<T: Element> GpuRef<T> {
    /// This buffer, to be used by work the caller queues.
    pub fn used_as(&self, access: Access) -> BlockUse<'_> {
        BlockUse { block: self.block(), range: self.byte_range(), access }
    }
}

impl<'a> BlockUse<'a> {
    pub(super) fn used(&self, argument: u16) -> Use<'a> {
        Use { history: self.block.history(), range: self.range.clone(), access: self.access, argument }
    }
}

impl fmt::Debug for BlockUse<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of bytes {:?} of {}", self.access, self.range, self.block.id())
    }
}
