//! `BlockId` and `Generation`: unique numbers of blocks, and of the device's contexts over time.

use std::fmt;

/// The name of a block; no other block of this process ever has it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct BlockId(u64);

impl BlockId {
    /// Bits of the number that counts the blocks of one runtime; those above it say which runtime.
    pub(crate) const NUMBER_BITS: u32 = 40;

    /// The name with that number.
    pub(crate) fn of(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    pub(crate) fn number(self) -> u64 {
        self.0
    }

    /// The number of the first block of a runtime.
    pub(crate) fn first_of(runtime: u64) -> u64 {
        runtime << Self::NUMBER_BITS
    }

    /// Whether a runtime gave the name out.
    pub(crate) fn is_of(self, runtime: u64) -> bool {
        self.0 >> Self::NUMBER_BITS == runtime & (u64::MAX >> Self::NUMBER_BITS)
    }
}

impl fmt::Display for BlockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block {}", self.0 & ((1 << Self::NUMBER_BITS) - 1))
    }
}

/// How often the device's context had been rebuilt when something was made.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Generation(pub u64);
