//! The types a value can have.

use crate::word_enum::word_enum;

word_enum! {
    /// The type of a value, of an element of a buffer, or of a scalar parameter.
    ///
    /// ```
    /// use kiln_ir::Type;
    ///
    /// assert_eq!(Type::from_word("bf16"), Some(Type::Bf16));
    /// assert_eq!((Type::Bf16.bytes(), Type::I8.is_signed()), (2, true));
    /// ```
    pub enum Type {
        /// A boolean. In memory one byte: zero is false, any other value is true, and stores write 0 or 1.
        Bool = "bool",
        /// Unsigned, 8 bits.
        U8 = "u8",
        /// Unsigned, 16 bits.
        U16 = "u16",
        /// Unsigned, 32 bits.
        U32 = "u32",
        /// Unsigned, 64 bits.
        U64 = "u64",
        /// Two's complement, 8 bits.
        I8 = "i8",
        /// Two's complement, 16 bits.
        I16 = "i16",
        /// Two's complement, 32 bits.
        I32 = "i32",
        /// Two's complement, 64 bits.
        I64 = "i64",
        /// IEEE half precision: 5 bits of exponent, 10 of fraction.
        F16 = "f16",
        /// The upper half of an `f32`: 8 bits of exponent, 7 of fraction.
        Bf16 = "bf16",
        /// IEEE single precision.
        F32 = "f32",
        /// IEEE double precision.
        F64 = "f64",
    }
}

impl Type {
    /// Bytes of one element in memory.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Bool | Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 | Self::F16 | Self::Bf16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    /// Bits of the number; 1 for [`Bool`](Self::Bool).
    pub const fn bits(self) -> u32 {
        match self {
            Self::Bool => 1,
            _ => 8 * self.bytes() as u32,
        }
    }

    /// The bits a value of this type may have set.
    pub const fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits())
    }

    /// Whether it is an integer type.
    pub const fn is_integer(self) -> bool {
        !self.is_float() && !matches!(self, Self::Bool)
    }

    /// Whether it is a signed integer type.
    pub const fn is_signed(self) -> bool {
        matches!(self, Self::I8 | Self::I16 | Self::I32 | Self::I64)
    }

    /// Whether it is a float type.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::Bf16 | Self::F32 | Self::F64)
    }

    /// The unsigned integer of the same size.
    pub const fn unsigned(self) -> Self {
        match self.bytes() {
            1 => Self::U8,
            2 => Self::U16,
            4 => Self::U32,
            _ => Self::U64,
        }
    }
}
