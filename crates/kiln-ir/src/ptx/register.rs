//! The kinds of PTX registers that values are emitted to.

use std::fmt;

use crate::scalar_type::Type;

/// The kinds of registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Class {
    /// Truths.
    Pred,
    /// Halves.
    B16,
    /// Integers up to 32 bits, filled with their sign or with zeros.
    B32,
    /// Integers of 64 bits, and addresses.
    B64,
    F32,
    F64,
}

impl Class {
    pub(super) const ALL: [Self; 6] = [Self::Pred, Self::B16, Self::B32, Self::B64, Self::F32, Self::F64];

    /// The kind that holds values of a type.
    pub(super) fn of(ty: Type) -> Self {
        match ty {
            Type::Bool => Self::Pred,
            Type::F16 | Type::Bf16 => Self::B16,
            Type::F32 => Self::F32,
            Type::F64 => Self::F64,
            Type::U64 | Type::I64 => Self::B64,
            _ => Self::B32,
        }
    }

    /// The type in its declaration, and of moves.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Pred => "pred",
            Self::B16 => "b16",
            Self::B32 => "b32",
            Self::B64 => "b64",
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }

    pub(super) fn prefix(self) -> &'static str {
        match self {
            Self::Pred => "%p",
            Self::B16 => "%h",
            Self::B32 => "%r",
            Self::B64 => "%rd",
            Self::F32 => "%f",
            Self::F64 => "%fd",
        }
    }
}

/// A register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Register {
    pub(super) class: Class,
    pub(super) number: u32,
}

impl fmt::Display for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.class.prefix(), self.number)
    }
}
