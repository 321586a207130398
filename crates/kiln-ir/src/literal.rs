//! Literals: constants of a type, as bits.

use std::fmt;

use crate::evaluate::half;
use crate::scalar_type::Type;

/// A constant of a type, as its bits: integers in two's complement, floats in their format, bools as 0 or 1.
///
/// Two literals are equal when their bits are, so `0.0` and `-0.0` differ and a NaN equals itself.
///
/// ```
/// use kiln_ir::{Literal, Type};
///
/// let small = Literal::from(-3i8);
/// assert_eq!((small.ty(), small.bits(), small.to_string()), (Type::I8, 0xfd, "-3i8".to_owned()));
/// assert_eq!(Literal::float(Type::F16, 0.1).to_string(), "0.099975586f16");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Literal {
    ty: Type,
    bits: u64,
}

impl Literal {
    /// The value of a type with these bits; higher bits are dropped.
    pub const fn new(ty: Type, bits: u64) -> Self {
        Self { ty, bits: bits & ty.mask() }
    }

    /// Zero, or false.
    pub const fn zero(ty: Type) -> Self {
        Self::new(ty, 0)
    }

    /// One, or true.
    pub fn one(ty: Type) -> Self {
        if ty.is_float() { Self::float(ty, 1.0) } else { Self::new(ty, 1) }
    }

    /// The float of a type nearest to a number. A type that is no float gets zero.
    pub fn float(ty: Type, value: f64) -> Self {
        match ty {
            Type::F16 => Self::new(ty, half::F16.narrow(value)),
            Type::Bf16 => Self::new(ty, half::BF16.narrow(value)),
            Type::F32 => Self::new(ty, u64::from((value as f32).to_bits())),
            Type::F64 => Self::new(ty, value.to_bits()),
            _ => Self::zero(ty),
        }
    }

    /// An integer of a type, if it fits.
    pub fn integer(ty: Type, value: i128) -> Option<Self> {
        let literal = Self::new(ty, value as u64);
        (ty.is_integer() && literal.as_integer() == value).then_some(literal)
    }

    /// Its type.
    pub const fn ty(self) -> Type {
        self.ty
    }

    /// Its bits; above the width of the type they are zero.
    pub const fn bits(self) -> u64 {
        self.bits
    }

    /// The value of an integer. A bool is 0 or 1, a float its bits.
    pub fn as_integer(self) -> i128 {
        let unused = 64 - self.ty.bits();
        if self.ty.is_signed() {
            i128::from((self.bits << unused) as i64 >> unused)
        } else {
            i128::from(self.bits)
        }
    }

    /// The value of a float, which `f64` holds exactly. Other types are converted.
    pub fn as_float(self) -> f64 {
        match self.ty {
            Type::F16 => half::F16.widen(self.bits),
            Type::Bf16 => half::BF16.widen(self.bits),
            Type::F32 => f64::from(f32::from_bits(self.bits as u32)),
            Type::F64 => f64::from_bits(self.bits),
            _ => self.as_integer() as f64,
        }
    }

    /// Whether every bit is zero: the number 0, false, but not `-0.0`.
    pub const fn is_zero(self) -> bool {
        self.bits == 0
    }
}

macro_rules! from {
    ($($rust:ty => $ty:ident, |$value:ident| $bits:expr;)*) => {$(
        impl From<$rust> for Literal {
            fn from($value: $rust) -> Self {
                Self::new(Type::$ty, $bits)
            }
        }
    )*};
}

from! {
    bool => Bool, |v| u64::from(v);
    u8 => U8, |v| u64::from(v);
    u16 => U16, |v| u64::from(v);
    u32 => U32, |v| u64::from(v);
    u64 => U64, |v| v;
    i8 => I8, |v| v as u64;
    i16 => I16, |v| v as u64;
    i32 => I32, |v| v as u64;
    i64 => I64, |v| v as u64;
    f32 => F32, |v| u64::from(v.to_bits());
    f64 => F64, |v| v.to_bits();
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ty, bits } = *self;
        match ty {
            Type::Bool => write!(f, "{}", bits != 0),
            Type::F16 | Type::Bf16 | Type::F32 if self.as_float().is_finite() => {
                write!(f, "{:?}{ty}", self.as_float() as f32)
            }
            Type::F64 if self.as_float().is_finite() => write!(f, "{:?}{ty}", self.as_float()),
            // Infinities and NaN have no digits; their bits say which they are.
            _ if ty.is_float() => write!(f, "{ty}#{bits:x}"),
            _ => write!(f, "{}{ty}", self.as_integer()),
        }
    }
}
