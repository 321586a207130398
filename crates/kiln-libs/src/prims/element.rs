//! The types of elements that the kernels are compiled for.

use kiln_runtime::Element;

/// Numbers that can be compared and counted: `u8`, `u32`, `i32`, `u64`, `i64`, `f32`, `f64`.
pub trait Comparable: Element + PartialOrd + sealed::Sealed {
    /// Its name in the names of kernels.
    #[doc(hidden)]
    const NAME: &'static str;
    /// What kind of number it is.
    #[doc(hidden)]
    const KIND: NumberKind;
    /// The number as a float, for arithmetic on bounds.
    #[doc(hidden)]
    fn to_f64(self) -> f64;
    /// The number as a wide integer, if it is one.
    #[doc(hidden)]
    fn to_i128(self) -> i128;
    /// The number in words.
    #[doc(hidden)]
    fn to_text(self) -> String {
        match Self::KIND {
            NumberKind::Float => format!("{:?}", self.to_f64()),
            NumberKind::Unsigned | NumberKind::Signed => self.to_i128().to_string(),
        }
    }
}

/// Numbers that can be reduced, scanned and sorted: `u32`, `i32`, `u64`, `i64`, `f32`, `f64`.
pub trait Numeric: Comparable {
    /// The neutral element of a sum.
    #[doc(hidden)]
    const ZERO: Self;
    /// What a maximum begins with: the least value, or NaN, which is left out.
    #[doc(hidden)]
    const NO_MAX: Self;
    /// What a minimum begins with: the greatest value, or NaN, which is left out.
    #[doc(hidden)]
    const NO_MIN: Self;
}

/// What kind of number a type is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NumberKind {
    /// An integer without a sign.
    Unsigned,
    /// An integer with a sign, in two's complement.
    Signed,
    /// An IEEE number.
    Float,
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! scalars {
    ($($type:ident $kind:ident,)*) => {$(
        impl sealed::Sealed for $type {}
        impl Comparable for $type {
            const NAME: &'static str = stringify!($type);
            const KIND: NumberKind = NumberKind::$kind;
            fn to_f64(self) -> f64 {
                self as f64
            }
            fn to_i128(self) -> i128 {
                self as i128
            }
        }
    )*};
}

scalars! { u8 Unsigned, u32 Unsigned, i32 Signed, u64 Unsigned, i64 Signed, f32 Float, f64 Float, }

macro_rules! numbers {
    ($($type:ident $zero:literal $no_max:ident $no_min:ident,)*) => {$(
        impl Numeric for $type {
            const ZERO: Self = $zero;
            const NO_MAX: Self = <$type>::$no_max;
            const NO_MIN: Self = <$type>::$no_min;
        }
    )*};
}

numbers! { u32 0 MIN MAX, i32 0 MIN MAX, u64 0 MIN MAX, i64 0 MIN MAX, f32 0.0 NAN NAN, f64 0.0 NAN NAN, }

/// The unsigned type with as many bytes, as kernels that only move bits are named.
pub(super) const fn bits_name(bytes: usize) -> Option<&'static str> {
    match bytes {
        1 => Some("u8"),
        2 => Some("u16"),
        4 => Some("u32"),
        8 => Some("u64"),
        _ => None,
    }
}
