//! Effects of a kernel on a pointer parameter: whether it reads or writes the memory.

use crate::position::Position;
use crate::scalar_set::ScalarSet;

/// The answer to "does the kernel do this through this pointer?"
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EffectAnswer {
    /// No instruction does.
    No,
    /// An instruction may, on some path.
    Yes,
    /// Unknown: some access may reach any memory.
    Unknown,
}

impl EffectAnswer {
    /// Whether it may be so: everything but a plain no.
    pub fn is_possible(self) -> bool {
        self != Self::No
    }
}

/// What a kernel does with the memory behind one pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PointerEffect {
    /// Whether it reads there.
    pub reads: EffectAnswer,
    /// Whether it writes there.
    pub writes: EffectAnswer,
}

/// An [`PointerEffect`] in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PointerAccess {
    /// Neither reads nor writes.
    Neither,
    /// Reads only.
    Reads,
    /// Writes only.
    Writes,
    /// Reads and writes.
    Both,
    /// Cannot tell.
    Unknown,
}

impl PointerEffect {
    /// The effect in one word: [`PointerAccess::Unknown`] as soon as one of the answers is.
    pub fn access(self) -> PointerAccess {
        match (self.reads, self.writes) {
            (EffectAnswer::Unknown, _) | (_, EffectAnswer::Unknown) => PointerAccess::Unknown,
            (EffectAnswer::No, EffectAnswer::No) => PointerAccess::Neither,
            (EffectAnswer::Yes, EffectAnswer::No) => PointerAccess::Reads,
            (EffectAnswer::No, EffectAnswer::Yes) => PointerAccess::Writes,
            (EffectAnswer::Yes, EffectAnswer::Yes) => PointerAccess::Both,
        }
    }
}

impl PointerAccess {
    /// The word `inspect` prints.
    pub fn word(self) -> &'static str {
        match self {
            Self::Neither => "neither",
            Self::Reads => "reads",
            Self::Writes => "writes",
            Self::Both => "both",
            Self::Unknown => "cannot tell",
        }
    }
}

/// A word of the parameters that is used as a pointer, or might be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PointerUse {
    /// The index of the parameter.
    pub parameter: usize,
    /// Bytes from the start of the parameter: 0 for a plain pointer, more for a pointer inside a structure.
    pub offset: u32,
    /// Whether something shows that it is a pointer: a `.ptr` mark, a conversion between address spaces, or an access
    /// through it. A word that is not followed may still be a pointer, or a number.
    pub is_pointer: bool,
    /// What the kernel does there, if it is one.
    pub effect: PointerEffect,
    /// The types of the elements the kernel reads and writes there. `None` where an access cannot be followed, or has no type.
    pub elements: Option<ScalarSet>,
}

/// Why some answer is [`EffectAnswer::Unknown`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// The function that contains the instruction.
    pub function: crate::name::Name,
    /// Where the instruction stands in the PTX text.
    pub position: Position,
    /// What about it cannot be followed.
    pub reason: &'static str,
}

/// What a kernel does with the memory its parameters point at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effects {
    /// Every 8-byte word of the parameters, in order.
    pub pointers: Vec<PointerUse>,
    /// The first few instructions that cannot be followed; empty when every answer is certain.
    pub doubts: Vec<Doubt>,
}

impl Effects {
    /// The word at `offset` of a parameter.
    pub fn pointer(&self, parameter: usize, offset: u32) -> Option<&PointerUse> {
        self.pointers.iter().find(|p| p.parameter == parameter && p.offset == offset)
    }
}
