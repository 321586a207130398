//! One recorded access, packed into eight bytes.
//!
//! ```text
//!  63       61    60    57    37     32          0
//!  │cluster│size│wide│kind│ pc │ lane │ epoch │
//! ```
//!
//! The epoch says which warp, and between which two of its synchronisations. What number that is depends on the memory: see
//! [`Order`](super::access_order::Order).

use crate::exec::finding::AccessKind;

/// Steps up to this one can be named.
const PC_LIMIT: u64 = (1 << 20) - 1;
const PC_SHIFT: u32 = 37;
const KIND_SHIFT: u32 = 57;
const WIDE: u64 = 1 << 60;
const SIZE_SHIFT: u32 = 61;
/// Whether its scope is the cluster.
const CLUSTER: u64 = 1 << 63;
/// Interval, lane, kind, scope and size: everything but where it was.
const WITHOUT_PC: u64 = !(PC_LIMIT << PC_SHIFT);

/// What an access does, and whether it takes part in synchronisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Touching {
    Read = 1,
    Write = 2,
    StrongRead = 3,
    StrongWrite = 4,
    Update = 5,
}

impl Touching {
    pub(crate) fn is_strong(self) -> bool {
        matches!(self, Self::StrongRead | Self::StrongWrite | Self::Update)
    }

    pub(crate) fn writes(self) -> bool {
        matches!(self, Self::Write | Self::StrongWrite | Self::Update)
    }

    pub(crate) fn access(self) -> AccessKind {
        match self {
            Self::Read | Self::StrongRead => AccessKind::Read,
            Self::Write | Self::StrongWrite => AccessKind::Write,
            Self::Update => AccessKind::Atomic,
        }
    }
}

/// The threads that the scope of a strong access includes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    Block,
    Cluster,
    Device,
}

/// One remembered access; zero is none.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Mark(pub(crate) u64);

impl Mark {
    pub(crate) const NONE: Self = Self(0);

    /// An access of lane 0. A plain one has no scope, and no size that matters.
    pub(crate) fn new(epoch: u32, pc: u32, kind: Touching, reach: Reach, element_bytes: u32) -> Self {
        let mut bits = u64::from(epoch);
        bits |= u64::from(pc).min(PC_LIMIT) << PC_SHIFT;
        bits |= (kind as u64) << KIND_SHIFT;
        if kind.is_strong() {
            bits |= u64::from(element_bytes.max(1).ilog2() & 3) << SIZE_SHIFT;
            bits |= match reach {
                Reach::Block => 0,
                Reach::Cluster => CLUSTER,
                Reach::Device => WIDE,
            };
        }
        Self(bits)
    }

    /// The same in another lane.
    #[inline(always)]
    pub(crate) fn in_lane(self, lane: usize) -> Self {
        Self(self.0 | (lane as u64) << 32)
    }

    /// The same in a lane so many later; there must be one.
    #[inline(always)]
    pub(crate) fn lanes_later(self, lanes: usize) -> Self {
        Self(self.0 + ((lanes as u64) << 32))
    }

    #[inline(always)]
    pub(crate) fn is_none(self) -> bool {
        self.0 == 0
    }

    #[inline(always)]
    pub(crate) fn epoch(self) -> u32 {
        self.0 as u32
    }

    #[inline(always)]
    pub(crate) fn lane(self) -> usize {
        (self.0 >> 32) as usize & 31
    }

    pub(crate) fn pc(self) -> u32 {
        (self.0 >> PC_SHIFT & PC_LIMIT) as u32
    }

    #[inline(always)]
    pub(crate) fn kind(self) -> Touching {
        match self.0 >> KIND_SHIFT & 7 {
            2 => Touching::Write,
            3 => Touching::StrongRead,
            4 => Touching::StrongWrite,
            5 => Touching::Update,
            _ => Touching::Read,
        }
    }

    /// Whether it is strong and reads, and so observes the write it reads from.
    #[inline(always)]
    pub(crate) fn observes(self) -> bool {
        matches!(self.kind(), Touching::StrongRead | Touching::Update)
    }

    /// Whether its scope reaches beyond its cluster.
    pub(crate) fn is_wide(self) -> bool {
        self.0 & WIDE != 0
    }

    /// Whether its scope is its cluster.
    pub(crate) fn is_of_cluster(self) -> bool {
        self.0 & CLUSTER != 0
    }

    pub(crate) fn size(self) -> u64 {
        self.0 >> SIZE_SHIFT & 3
    }

    /// Whether two marks differ at most in where they were made.
    #[inline(always)]
    pub(crate) fn is_like(self, other: Self) -> bool {
        (self.0 ^ other.0) & WITHOUT_PC == 0
    }

    /// Whether two marks are of one kind, scope and size.
    #[inline(always)]
    pub(crate) fn is_of_kind(self, other: Self) -> bool {
        (self.0 ^ other.0) >> KIND_SHIFT == 0
    }

    /// Whether every access that races with this one, given that it is ordered before the other, races with the other as well, and the other
    /// observes what this one observed.
    pub(crate) fn is_covered_by(self, later: Self) -> bool {
        match (self.kind(), later.kind()) {
            (Touching::Read, Touching::Read) => true,
            // A write may be observed, and what follows is then ordered behind it but not behind what its thread did before it. An update
            // observes the updates before it.
            (Touching::StrongRead, Touching::StrongRead) | (Touching::Update, Touching::Update) => {
                (self.0 ^ later.0) & (WIDE | CLUSTER) == 0 && self.size() == later.size()
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_holds_what_it_was_made_of() {
        let mark = Mark::new(u32::MAX, 77, Touching::Update, Reach::Device, 8).in_lane(31);
        assert_eq!((mark.epoch(), mark.lane(), mark.pc()), (u32::MAX, 31, 77));
        assert_eq!((mark.kind(), mark.is_wide(), mark.size()), (Touching::Update, true, 3));
        let far = Mark::new(1, u32::MAX, Touching::Read, Reach::Device, 4);
        assert_eq!((far.pc(), far.is_wide(), far.lane()), ((1 << 20) - 1, false, 0));
        assert!(far.is_like(Mark::new(1, 5, Touching::Read, Reach::Block, 1)));
    }
}
