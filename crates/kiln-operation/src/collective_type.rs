//! Element types of collectives.

use std::fmt;
use std::str::FromStr;

use crate::field::Field;

macro_rules! types {
    ($($(#[$note:meta])* $variant:ident = $word:literal, $bytes:literal;)*) => {
        /// The type of the elements that a collective moves or reduces.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[non_exhaustive]
        pub enum CollectiveType { $($(#[$note])* $variant,)* }

        impl CollectiveType {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Its name in the text of a collective.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// Bytes of an element.
            pub fn bytes(self) -> u64 {
                match self { $(Self::$variant => $bytes,)* }
            }
        }

        impl Field for CollectiveType {
            const WANTED: &'static str = concat!("one of" $(, " ", $word)*);

            fn parse(text: &str) -> Option<Self> {
                match text { $($word => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

types! {
    /// Signed integer of 8 bits.
    I8 = "i8", 1;
    /// Unsigned integer of 8 bits.
    U8 = "u8", 1;
    /// Signed integer of 16 bits. It is moved, and not reduced: NCCL has no such type.
    I16 = "i16", 2;
    /// Unsigned integer of 16 bits. It is moved, and not reduced: NCCL has no such type.
    U16 = "u16", 2;
    /// Signed integer of 32 bits.
    I32 = "i32", 4;
    /// Unsigned integer of 32 bits.
    U32 = "u32", 4;
    /// Signed integer of 64 bits.
    I64 = "i64", 8;
    /// Unsigned integer of 64 bits.
    U64 = "u64", 8;
    /// Floating point of 8 bits: sign, 4 bits of exponent, 3 of fraction (E4M3).
    F8E4M3 = "f8e4m3", 1;
    /// IEEE half precision.
    F16 = "f16", 2;
    /// The upper half of an `f32`.
    Bf16 = "bf16", 2;
    /// IEEE single precision.
    F32 = "f32", 4;
    /// IEEE double precision.
    F64 = "f64", 8;
}

impl CollectiveType {
    /// Whether elements of this type can be reduced.
    pub fn is_reducible(self) -> bool {
        !matches!(self, Self::I16 | Self::U16)
    }
}

impl fmt::Display for CollectiveType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for CollectiveType {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::parse(text).ok_or(())
    }
}

/// A type whose values collectives move and reduce.
pub trait CollectiveElement {
    /// The type, as collectives name it.
    const TYPE: CollectiveType;
}

macro_rules! elements {
    ($($type:ty = $name:ident,)*) => {
        $(impl CollectiveElement for $type { const TYPE: CollectiveType = CollectiveType::$name; })*
    };
}

elements! {
    i8 = I8,
    u8 = U8,
    i16 = I16,
    u16 = U16,
    i32 = I32,
    u32 = U32,
    i64 = I64,
    u64 = U64,
    half::f16 = F16,
    half::bf16 = Bf16,
    f32 = F32,
    f64 = F64,
}
