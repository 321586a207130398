//! Where a value may come from, as a set.

use std::ops::{BitOr, BitOrAssign};

/// A set of origins in one word.
///
/// The low bits are kinds of memory; each 8-byte word of the kernel's parameters has its bit as far as they
/// reach, and the other words share the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(super) struct Origins(u128);

impl Origins {
    pub(super) const NONE: Self = Self(0);
    /// Any pointer at all: loaded from memory, returned by code we cannot follow.
    pub(super) const UNKNOWN: Self = Self(1);
    /// Data too narrow to be a pointer, of which one could be put together.
    pub(super) const FRAGMENT: Self = Self(1 << 1);
    /// The address of a local variable.
    pub(super) const LOCAL: Self = Self(1 << 2);
    /// The address of a shared variable.
    pub(super) const SHARED: Self = Self(1 << 3);
    /// The address of a variable or function of the module, of the device's heap, or of the driver's workspace: no
    /// parameter points there.
    pub(super) const MODULE: Self = Self(1 << 4);
    /// The address of a parameter, not its content.
    pub(super) const PARAMETER: Self = Self(1 << 5);

    /// Went through an operation that may have negated a pointer, so that adding it may cancel one.
    pub(super) const MANGLED: Self = Self(1 << 6);

    const FIRST_WORD: u32 = 7;

    /// How many parameter words are told apart.
    pub(super) const MAX_WORDS: usize = 128 - Self::FIRST_WORD as usize;

    /// The content of parameter word number `word`.
    pub(super) fn word(word: usize) -> Self {
        Self(1 << (Self::FIRST_WORD + word.min(Self::MAX_WORDS - 1) as u32))
    }

    /// All parameter words in the set.
    pub(super) fn words(self) -> Self {
        Self(self.0 >> Self::FIRST_WORD << Self::FIRST_WORD)
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(super) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The origins a pointer can have.
    pub(super) fn pointed(self) -> Self {
        self.without(Self::FRAGMENT | Self::MANGLED)
    }

    /// What a full-width value put together from pieces with these origins may point into: a piece of unknown data
    /// may have been a piece of any pointer.
    pub(super) fn assembled(self) -> Self {
        if self.meets(Self::FRAGMENT) { self.pointed() | Self::UNKNOWN } else { self.pointed() }
    }
}

impl BitOr for Origins {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for Origins {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}
