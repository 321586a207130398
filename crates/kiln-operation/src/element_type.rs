//! Element types of operands.

use std::fmt;
use std::str::FromStr;

/// The type of the elements of an operand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ElementType {
    /// Floating point of 8 bits: sign, 4 bits of exponent, 3 of fraction (E4M3).
    F8E4M3,
    /// IEEE half precision.
    F16,
    /// The upper half of an `f32`.
    Bf16,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
    /// Signed integer of 8 bits.
    I8,
    /// Signed integer of 32 bits.
    I32,
}

impl ElementType {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::F8E4M3, Self::F16, Self::Bf16, Self::F32, Self::F64, Self::I8, Self::I32];

    /// Its name in the text of an operation.
    pub fn name(self) -> &'static str {
        match self {
            Self::F8E4M3 => "f8e4m3",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::I8 => "i8",
            Self::I32 => "i32",
        }
    }

    /// Bytes of an element.
    pub fn bytes(self) -> u64 {
        match self {
            Self::F8E4M3 | Self::I8 => 1,
            Self::F16 | Self::Bf16 => 2,
            Self::F32 | Self::I32 => 4,
            Self::F64 => 8,
        }
    }

    /// Half the distance between 1 and the next number: the largest relative error of a rounding. Zero for integers.
    pub fn unit_roundoff(self) -> f64 {
        let fraction_bits = match self {
            Self::F8E4M3 => 3,
            Self::F16 => 10,
            Self::Bf16 => 7,
            Self::F32 => 23,
            Self::F64 => 52,
            Self::I8 | Self::I32 => return 0.0,
        };
        1.0 / (1_u64 << (fraction_bits + 1)) as f64
    }

    /// Whether it is `f32` or `f64`.
    pub fn is_single_or_double(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ElementType {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|element| element.name() == text).ok_or(())
    }
}
