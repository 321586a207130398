//! Where an undefined value comes from.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use crate::exec::check::PageHasher;
use crate::exec::memory::generic_address::Place;

/// The first read of bytes that were never written, a shuffle from a lane that did not execute it, or a register that was never assigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Memory {
        /// The load.
        pc: u32,
        /// Its block in the grid, and its thread in the block.
        block: [u32; 3],
        thread: u32,
        place: Place,
        address: u64,
        bytes: u32,
        /// The bits that were undefined.
        bits: u64,
        /// Whether it is a value that the program means: nothing beside it was defined, or something was computed with it. Otherwise it may
        /// be padding that is copied along.
        is_value: bool,
    },
    /// A shuffle took a value from a lane that did not execute it.
    Lane {
        /// The shuffle.
        pc: u32,
        /// The block in the grid, and the thread in the block that took the value.
        block: [u32; 3],
        thread: u32,
        /// The other lane.
        from: u8,
        why: Absence,
    },
    Register {
        /// The place of the function in the lowered code.
        function: u32,
        /// The register, by its number in the function.
        register: u32,
    },
}

/// Why a lane does not take part in a shuffle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absence {
    /// It has exited, or the block does not have it.
    Exited,
    /// The mask does not name it.
    NotNamed,
    /// It took another path.
    Inactive,
}

impl std::fmt::Display for Absence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Exited => "has exited or does not exist",
            Self::NotNamed => "the mask does not name",
            Self::Inactive => "is not active",
        })
    }
}

impl Origin {
    /// What stands where no bit is undefined.
    pub(crate) const NONE: Self = Self::Register { function: u32::MAX, register: u32::MAX };

    /// The step that read the bytes; `other` where none did.
    pub(crate) fn pc_or(self, other: u32) -> u32 {
        match self {
            Self::Memory { pc, .. } | Self::Lane { pc, .. } => pc,
            Self::Register { .. } => other,
        }
    }

    /// The origin of what is computed with the value: that is no padding.
    pub(crate) fn computed(self) -> Self {
        match self {
            Self::Memory { pc, block, thread, place, address, bytes, bits, .. } => {
                Self::Memory { pc, block, thread, place, address, bytes, bits, is_value: true }
            }
            Self::Lane { .. } | Self::Register { .. } => self,
        }
    }

    /// Whether the value may be padding that is copied along.
    pub(crate) fn may_be_padding(self) -> bool {
        matches!(self, Self::Memory { is_value: false, .. })
    }

    /// Whether two values come from one read, or one register.
    pub(crate) fn is_same(self, other: Self) -> bool {
        self.computed() == other.computed()
    }
}

/// The most bytes whose origin is remembered.
const CAPACITY: usize = 1 << 18;

/// Where the undefined bytes of a memory come from that were copied into it.
#[derive(Debug, Default)]
pub(crate) struct OriginNotes {
    /// By the number of the byte.
    bytes: HashMap<u64, Origin, BuildHasherDefault<PageHasher>>,
}

impl OriginNotes {
    /// Remembers the origin of a byte; where too many are remembered, the load of the byte counts as the origin.
    pub(crate) fn note(&mut self, byte: u64, origin: Origin) {
        if self.bytes.len() < CAPACITY || self.bytes.contains_key(&byte) {
            self.bytes.insert(byte, origin);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) fn at(&self, byte: u64) -> Option<Origin> {
        self.bytes.get(&byte).copied()
    }

    /// Forgets the bytes for which `is_gone` holds.
    pub(crate) fn forget(&mut self, is_gone: impl Fn(u64) -> bool) {
        if !self.bytes.is_empty() {
            self.bytes.retain(|byte, _| !is_gone(*byte));
        }
    }
}
