//! Decodes the token by which the heap finds a block.

use super::arena::TakenPiece;
use crate::block::BlockToken;

/// Which units a block has, and of which arena.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BlockUnits {
    pub(crate) taken: TakenPiece,
    pub(crate) units: u32,
    pub(crate) arena: u32,
}

impl BlockUnits {
    /// What a block of no bytes has.
    pub(super) const NOTHING: Self = Self { taken: TakenPiece { piece: 0, start: 0 }, units: 0, arena: 0 };
    const ARENA_BITS: u32 = 24;

    #[inline]
    pub(crate) fn token(self) -> BlockToken {
        BlockToken {
            first: u64::from(self.taken.piece) << 32 | u64::from(self.units),
            second: self.taken.start << Self::ARENA_BITS | u64::from(self.arena),
        }
    }

    #[inline]
    pub(crate) fn of(token: BlockToken) -> Self {
        Self {
            taken: TakenPiece { piece: (token.first >> 32) as u32, start: token.second >> Self::ARENA_BITS },
            units: token.first as u32,
            arena: token.second as u32 & ((1 << Self::ARENA_BITS) - 1),
        }
    }
}
