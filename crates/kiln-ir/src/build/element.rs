//! Rust types that stand for the types of a program.

use crate::literal::Literal;
use crate::operation::Operand;
use crate::scalar_type::Type;

use super::val::Val;
use super::var::Var;

/// A Rust type that stands for a [`Type`]; its values are literals.
pub trait Element: Copy + Into<Literal> {
    /// The type it stands for.
    const TYPE: Type;
}

/// A number.
pub trait Number: Element {}

/// A whole number.
pub trait Integer: Number {}

/// A floating point number.
pub trait Float: Number {}

/// A number of [`Type::F16`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct F16(u16);

/// A number of [`Type::Bf16`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bf16(u16);

macro_rules! elements {
    ($($rust:ty => $ty:ident $(, $kind:ident)*;)*) => {$(
        impl Element for $rust {
            const TYPE: Type = Type::$ty;
        }
        $(impl $kind for $rust {})*
    )*};
}

elements! {
    bool => Bool;
    u8 => U8, Number, Integer;
    u16 => U16, Number, Integer;
    u32 => U32, Number, Integer;
    u64 => U64, Number, Integer;
    i8 => I8, Number, Integer;
    i16 => I16, Number, Integer;
    i32 => I32, Number, Integer;
    i64 => I64, Number, Integer;
    F16 => F16, Number, Float;
    Bf16 => Bf16, Number, Float;
    f32 => F32, Number, Float;
    f64 => F64, Number, Float;
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
pub trait Term<T: Element> {
    /// The operand.
    #[track_caller]
    fn operand(self) -> Operand;
}

impl<T: Element> Term<T> for T {
    fn operand(self) -> Operand {
        Operand::Literal(self.into())
    }
}

impl<T: Element> Term<T> for Val<'_, T> {
    fn operand(self) -> Operand {
        self.operand
    }
}

impl<T: Element> Term<T> for Var<'_, T> {
    #[track_caller]
    fn operand(self) -> Operand {
        self.get().operand
    }
}
