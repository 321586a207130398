//! Rust types that stand for the types of a program.

use crate::literal::Literal;
use crate::operation::Operand;
use crate::scalar_type::Type;

use super::value::Val;
use super::variable::Var;

/// A Rust type that stands for a [`Type`]; its values are literals.
pub trait KernelElement: Copy + Into<Literal> {
    /// The type it stands for.
    const TYPE: Type;
}

/// A number.
pub trait KernelNumber: KernelElement {}

/// A whole number.
pub trait KernelInteger: KernelNumber {}

/// A floating point number.
pub trait KernelFloat: KernelNumber {}

/// A number that tiles multiply, with the type in which they add the products.
pub trait KernelFactor: KernelNumber {
    /// The type of the sum.
    type Sum: KernelNumber;
}

/// A number of [`Type::F16`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct F16(u16);

/// A number of [`Type::Bf16`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bf16(u16);

macro_rules! elements {
    ($($rust:ty => $ty:ident $(, $kind:ident)*;)*) => {$(
        impl KernelElement for $rust {
            const TYPE: Type = Type::$ty;
        }
        $(impl $kind for $rust {})*
    )*};
}

elements! {
    bool => Bool;
    u8 => U8, KernelNumber, KernelInteger;
    u16 => U16, KernelNumber, KernelInteger;
    u32 => U32, KernelNumber, KernelInteger;
    u64 => U64, KernelNumber, KernelInteger;
    i8 => I8, KernelNumber, KernelInteger;
    i16 => I16, KernelNumber, KernelInteger;
    i32 => I32, KernelNumber, KernelInteger;
    i64 => I64, KernelNumber, KernelInteger;
    F16 => F16, KernelNumber, KernelFloat;
    Bf16 => Bf16, KernelNumber, KernelFloat;
    f32 => F32, KernelNumber, KernelFloat;
    f64 => F64, KernelNumber, KernelFloat;
}

macro_rules! factors {
    ($($rust:ty => $sum:ty,)*) => {$(
        impl KernelFactor for $rust {
            type Sum = $sum;
        }
    )*};
}

factors! {
    F16 => f32,
    Bf16 => f32,
    f32 => f32,
    i8 => i32,
    f64 => f64,
}

macro_rules! halves {
    ($($rust:ident => $ty:ident,)*) => {$(
        impl $rust {
            /// The number with these bits.
            pub const fn from_bits(bits: u16) -> Self {
                Self(bits)
            }

            /// The nearest number there is.
            pub fn new(value: f32) -> Self {
                Self(Literal::float(Type::$ty, f64::from(value)).bits() as u16)
            }

            /// Its bits.
            pub const fn to_bits(self) -> u16 {
                self.0
            }
        }

        impl From<$rust> for Literal {
            fn from(value: $rust) -> Self {
                Self::new(Type::$ty, u64::from(value.0))
            }
        }
    )*};
}

halves! {
    F16 => F16,
    Bf16 => Bf16,
}

/// An operand of type `T`: a [`Val`], a [`Var`], or a Rust value.
pub trait IntoOperand<T: KernelElement> {
    /// The operand.
    #[track_caller]
    fn operand(self) -> Operand;
}

impl<T: KernelElement> IntoOperand<T> for T {
    fn operand(self) -> Operand {
        Operand::Literal(self.into())
    }
}

impl<T: KernelElement> IntoOperand<T> for Val<'_, T> {
    fn operand(self) -> Operand {
        self.operand
    }
}

impl<T: KernelElement> IntoOperand<T> for Var<'_, T> {
    #[track_caller]
    fn operand(self) -> Operand {
        self.get().operand
    }
}
