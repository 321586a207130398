//! Whether a parameter or an argument is an integer, a floating-point number, or unknown.
//!
//! A `float` where an `int` belongs has the right size and the wrong bits, and the kernel counts to a billion. PTX says of most
//! parameters which of the two they are, and a Rust type says it of an argument; only two that are both known can contradict.

use std::any::TypeId;
use std::fmt;

/// Whether a value is a whole number or a floating point number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Number {
    /// An integer, with or without a sign: kernels and callers mix those freely, and the bits are the same.
    Whole,
    /// A floating point number.
    Float,
    /// Not known: bits, a struct, half precision.
    #[default]
    Unknown,
}

impl Number {
    /// What a Rust type is.
    #[inline(always)]
    pub fn of<T: 'static>() -> Self {
        // Decided where it is compiled: all of these are constants.
        let is = |other: TypeId| TypeId::of::<T>() == other;
        if is(TypeId::of::<f32>()) || is(TypeId::of::<f64>()) {
            Self::Float
        } else if is(TypeId::of::<i32>())
            || is(TypeId::of::<u32>())
            || is(TypeId::of::<i64>())
            || is(TypeId::of::<u64>())
            || is(TypeId::of::<usize>())
            || is(TypeId::of::<isize>())
            || is(TypeId::of::<u16>())
            || is(TypeId::of::<i16>())
            || is(TypeId::of::<u8>())
            || is(TypeId::of::<i8>())
        {
            Self::Whole
        } else {
            Self::Unknown
        }
    }

    /// Whether the two are known to be different.
    #[inline]
    pub fn contradicts(self, other: Self) -> bool {
        matches!((self, other), (Self::Whole, Self::Float) | (Self::Float, Self::Whole))
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Whole => "a whole number",
            Self::Float => "a floating point number",
            Self::Unknown => "a value",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_two_that_are_known_contradict() {
        use Number::{Float, Unknown, Whole};
        for (one, other, expected) in [
            (Number::of::<f32>(), Number::of::<i32>(), true),
            (Number::of::<u64>(), Number::of::<f64>(), true),
            (Number::of::<u32>(), Number::of::<i32>(), false),
            (Number::of::<[f32; 1]>(), Whole, false),
            (Number::of::<u8>(), Unknown, false),
            (Unknown, Float, false),
        ] {
            assert_eq!(one.contradicts(other), expected, "{one:?} and {other:?}");
            assert_eq!(other.contradicts(one), expected, "{other:?} and {one:?}");
        }
    }
}
