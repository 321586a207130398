//! The outcome of an interpreted launch.

use crate::program::Draft;
use crate::statement::trap_text;

/// The outcome of a launch that ran to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterpretOutcome {
    /// Accesses that were out of range.
    pub out_of_range: OutOfRange,
    /// Those of them made by threads that have an element of the buffer the program runs over. The last block of such a program has more
    /// threads unless the buffer fills it. The same as `out_of_range` for a program that runs over no buffer.
    pub covered_out_of_range: OutOfRange,
    /// Steps of all threads together.
    pub steps: u64,
    /// Products that were added to elements of tiles.
    pub tile_products: u64,
}

/// Accesses out of range, which do nothing or give 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutOfRange {
    /// Loads that gave 0.
    pub loads: u64,
    /// Stores that did nothing.
    pub stores: u64,
    /// Atomics that did nothing and gave 0.
    pub atomics: u64,
}

impl OutOfRange {
    /// The sum.
    pub const fn total(self) -> u64 {
        self.loads + self.stores + self.atomics
    }

    /// The sums of two counts.
    pub(super) const fn plus(self, other: Self) -> Self {
        Self {
            loads: self.loads + other.loads,
            stores: self.stores + other.stores,
            atomics: self.atomics + other.atomics,
        }
    }
}

/// Why a launch was refused or stopped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InterpretError {
    /// The program executed `trap`.
    #[error("thread {thread:?} of block {block:?} trapped with {}", trap_text(*code))]
    Trap {
        /// What the program said.
        code: u32,
        /// The block.
        block: [u32; 3],
        /// The thread in it.
        thread: [u32; 3],
    },
    /// The launch ran longer than it may.
    #[error("the launch ran {limit} steps, the limit; raise it if the program is that long")]
    StepLimit {
        /// The most it may run.
        limit: u64,
    },
    /// An argument does not fit the program; nothing has run.
    #[error("{what}")]
    Argument {
        /// What does not fit, with its name.
        what: String,
    },
    /// An unchecked buffer was accessed out of range, which is undefined.
    #[error("index {index} of the unchecked buffer `{buffer}`, which has {length} elements")]
    Unchecked {
        /// The buffer.
        buffer: String,
        /// The index.
        index: i128,
        /// How many elements it has.
        length: u64,
    },
    /// Threads wait for others that wait elsewhere.
    #[error("threads of block {block:?} wait for each other at different places")]
    Deadlock {
        /// The block.
        block: [u32; 3],
    },
}

impl InterpretError {
    /// The error for an argument.
    pub(crate) fn argument(draft: &Draft, what: String) -> Self {
        Self::Argument { what: format!("kernel `{}`: {what}", draft.name) }
    }

    /// Whether the program itself stopped the launch.
    pub fn is_trap(&self) -> bool {
        matches!(self, Self::Trap { .. })
    }
}
