//! The identity and lifetime of an allocation, a mapping or a host block, for use-after-free findings.

use std::fmt;
use std::sync::Arc;

use kiln_driver::{HostId, MemoryId, ReservationId};

use crate::check::access_origin::Mark;

/// A stretch of memory with a name and a beginning.
#[derive(Debug)]
pub(crate) struct Region {
    pub(crate) name: RegionName,
    pub(crate) device: u32,
    /// The first device address; 0 for host blocks, which have none.
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    /// What uses it must be ordered after this.
    pub(crate) born: Arc<Mark>,
}

/// What a region is called in messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RegionName {
    Memory(MemoryId),
    Mapping(ReservationId, u64),
    Host(HostId),
}

impl RegionName {
    /// Whether a pointer into one may be used to reach the other: the mappings of a reservation lie side by side.
    pub(crate) fn is_same_block(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Mapping(mine, _), Self::Mapping(theirs, _)) => mine == theirs,
            _ => self == other,
        }
    }
}

impl fmt::Display for RegionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(id) => id.fmt(f),
            Self::Mapping(id, offset) => write!(f, "the pages at {offset:#x} of {id}"),
            Self::Host(id) => id.fmt(f),
        }
    }
}

/// A region that is gone, and who ended it.
#[derive(Clone, Debug)]
pub(crate) struct Tomb {
    pub(crate) region: Arc<Region>,
    pub(crate) end: u64,
    pub(crate) death: Arc<Mark>,
}
