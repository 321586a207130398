//! What a node does to bytes.

use std::ops::Range;

use kiln_driver::Access;

use crate::ids::BlockId;

/// Whose bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Owner {
    /// A block of device memory.
    Device(BlockId),
    /// Host data of the graph, by its place in the list.
    Host(usize),
}

/// What a node does to bytes of one owner.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Touch {
    pub(super) owner: Owner,
    pub(super) range: Range<u64>,
    pub(super) access: Access,
}

impl Touch {
    /// Whether two touches, by different nodes, must not happen at once.
    pub(super) fn conflicts(&self, other: &Self) -> bool {
        self.owner == other.owner
            && (self.access.writes() || other.access.writes())
            && self.range.start < other.range.end
            && other.range.start < self.range.end
    }
}
