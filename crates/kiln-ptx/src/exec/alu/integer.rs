//! Integer arithmetic.
//!
//! Where PTX leaves a result open (division by zero), the answer is the one hardware gives.

use super::{Alu, lanes};
use crate::ScalarType;

/// An [`Alu`] for each integer type: in the body `T` is the type, `U` its unsigned twin, and the operands have type
/// `T`.
macro_rules! integers {
    ($ty:expr, |$a:ident, $b:ident, $c:ident| $body:expr) => {
        match $ty {
            ScalarType::B16 | ScalarType::U16 => Some(integers!(@ u16, u16, |$a, $b, $c| $body)),
            ScalarType::S16 => Some(integers!(@ i16, u16, |$a, $b, $c| $body)),
            ScalarType::B32 | ScalarType::U32 => Some(integers!(@ u32, u32, |$a, $b, $c| $body)),
            ScalarType::S32 => Some(integers!(@ i32, u32, |$a, $b, $c| $body)),
            ScalarType::B64 | ScalarType::U64 => Some(integers!(@ u64, u64, |$a, $b, $c| $body)),
            ScalarType::S64 => Some(integers!(@ i64, u64, |$a, $b, $c| $body)),
            _ => None,
        }
    };
    (@ $t:ty, $u:ty, |$a:ident, $b:ident, $c:ident| $body:expr) => {{
        #[allow(dead_code)]
        type T = $t;
        lanes!(|a, b, c| {
            #[allow(unused_variables)]
            let ($a, $b, $c) = (a as $t, b as $t, c as $t);
            u64::from($body as $u)
        })
    }};
}
pub(crate) use integers;

/// `a + b`.
pub(crate) fn add(ty: ScalarType) -> Option<Alu> {
    integers!(ty, |a, b, _c| a.wrapping_add(b))
}

/// `a - b`.
pub(crate) fn subtract(ty: ScalarType) -> Option<Alu> {
    integers!(ty, |a, b, _c| a.wrapping_sub(b))
}

/// `a + b`, `a - b` of `s32`, clamped.
pub(crate) fn add_saturating(subtract: bool) -> Alu {
    match subtract {
        false => lanes!(|a, b| u64::from((a as i32).saturating_add(b as i32) as u32)),
        true => lanes!(|a, b| u64::from((a as i32).saturating_sub(b as i32) as u32)),
    }
}

/// The lower half of `a * b + c`.
pub(crate) fn multiply_low(ty: ScalarType) -> Option<Alu> {
    integers!(ty, |a, b, c| a.wrapping_mul(b).wrapping_add(c))
}

/// The upper half of `a * b`, plus `c`.
pub(crate) fn multiply_high(ty: ScalarType) -> Option<Alu> {
    integers!(ty, |a, b, c| {
        let high = if T::BITS < 64 {
            (a as i64).wrapping_mul(b as i64).wrapping_shr(T::BITS) as T
        } else {
            ((a as i128).wrapping_mul(b as i128) >> 64) as T
        };
        high.wrapping_add(c)
    })
}

/// The upper half of `a * b`, plus `c`, of `s32`, clamped.
pub(crate) fn multiply_high_saturating() -> Alu {
    lanes!(|a, b, c| {
        let high = (i64::from(a as i32) * i64::from(b as i32)) >> 32;
        u64::from((high as i32).saturating_add(c as i32) as u32)
    })
}

/// `a * b + c` in twice the width.
pub(crate) fn multiply_wide(ty: ScalarType) -> Option<Alu> {
    Some(match ty {
        ScalarType::U16 => lanes!(|a, b, c| {
            u64::from((u32::from(a as u16) * u32::from(b as u16)).wrapping_add(c as u32))
        }),
        ScalarType::S16 => lanes!(|a, b, c| {
            u64::from((i32::from(a as i16) * i32::from(b as i16)).wrapping_add(c as i32) as u32)
        }),
        ScalarType::U32 => lanes!(|a, b, c| (u64::from(a as u32) * u64::from(b as u32)).wrapping_add(c)),
        ScalarType::S32 => {
            lanes!(|a, b, c| (i64::from(a as i32) * i64::from(b as i32)).wrapping_add(c as i64) as u64)
        }
        _ => return None,
    })
}

/// The product of the low 24 bits, plus `c`: its low 32 bits, or from bit 16 the next 32.
pub(crate) fn multiply24(signed: bool, high: bool) -> Alu {
    match (signed, high) {
        (false, false) => lanes!(|a, b, c| u64::from((product24u(a, b) as u32).wrapping_add(c as u32))),
        (false, true) => {
            lanes!(|a, b, c| u64::from(((product24u(a, b) >> 16) as u32).wrapping_add(c as u32)))
        }
        (true, false) => lanes!(|a, b, c| u64::from((product24s(a, b) as u32).wrapping_add(c as u32))),
        (true, true) => lanes!(|a, b, c| u64::from(((product24s(a, b) >> 16) as u32).wrapping_add(c as u32))),
    }
}

/// `mad24.hi.sat.s32`.
pub(crate) fn multiply24_saturating() -> Alu {
    lanes!(|a, b, c| u64::from(((product24s(a, b) >> 16) as i32).saturating_add(c as i32) as u32))
}

fn product24u(a: u64, b: u64) -> u64 {
    (a & 0xff_ffff) * (b & 0xff_ffff)
}

fn product24s(a: u64, b: u64) -> i64 {
    let extend = |x: u64| i64::from((x as i32) << 8 >> 8);
    extend(a) * extend(b)
}

/// `c + |a - b|`.
pub(crate) fn sum_of_difference(ty: ScalarType) -> Option<Alu> {
    integers!(ty, |a, b, c| c.wrapping_add(a.abs_diff(b) as T))
}

/// `a / b`; by zero all ones.
pub(crate) fn divide(ty: ScalarType) -> Option<Alu> {
    integers!(ty, |a, b, _c| if b == 0 { !0 } else { a.wrapping_div(b) })
}

/// `a % b`; by zero all ones.
pub(crate) fn remainder(ty: ScalarType) -> Option<Alu> {
    integers!(ty, |a, b, _c| if b == 0 { !0 } else { a.wrapping_rem(b) })
}

/// The smaller of `a` and `b`.
pub(crate) fn minimum(ty: ScalarType) -> Option<Alu> {
    integers!(ty, |a, b, _c| a.min(b))
}

/// The larger of `a` and `b`.
pub(crate) fn maximum(ty: ScalarType) -> Option<Alu> {
    integers!(ty, |a, b, _c| a.max(b))
}

/// The smaller or larger of `a` and `b`, or 0 if that is negative.
pub(crate) fn extreme_relu(smaller: bool) -> Alu {
    match smaller {
        true => lanes!(|a, b| u64::from((a as i32).min(b as i32).max(0) as u32)),
        false => lanes!(|a, b| u64::from((a as i32).max(b as i32).max(0) as u32)),
    }
}

/// `|a|`; the smallest number stays itself.
pub(crate) fn absolute(ty: ScalarType) -> Option<Alu> {
    Some(match ty {
        ScalarType::S16 => lanes!(|a| u64::from((a as i16).wrapping_abs() as u16)),
        ScalarType::S32 => lanes!(|a| u64::from((a as i32).wrapping_abs() as u32)),
        ScalarType::S64 => lanes!(|a| (a as i64).wrapping_abs() as u64),
        _ => return None,
    })
}

/// `-a`.
pub(crate) fn negate(ty: ScalarType) -> Option<Alu> {
    integers!(ty, |a, _b, _c| a.wrapping_neg())
}

/// `a + b + carry` or `a - b - borrow`, and the carry out, for one lane.
pub(crate) fn add_with_carry(wide: bool, a: u64, b: u64, carry: bool) -> (u64, bool) {
    if wide {
        let (sum, first) = a.overflowing_add(b);
        let (sum, second) = sum.overflowing_add(u64::from(carry));
        return (sum, first | second);
    }
    let sum = (a & 0xffff_ffff) + (b & 0xffff_ffff) + u64::from(carry);
    (sum & 0xffff_ffff, sum >> 32 != 0)
}

/// The product `mad.cc` and `madc` add to: its lower or upper half.
pub(crate) fn product_half(ty: ScalarType, high: bool, a: u64, b: u64) -> u64 {
    match (ty, high) {
        (ScalarType::U64 | ScalarType::S64, false) => a.wrapping_mul(b),
        (ScalarType::U64, true) => ((u128::from(a) * u128::from(b)) >> 64) as u64,
        (ScalarType::S64, true) => ((i128::from(a as i64) * i128::from(b as i64)) >> 64) as u64,
        (_, false) => u64::from((a as u32).wrapping_mul(b as u32)),
        (ScalarType::S32, true) => ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u64 & 0xffff_ffff,
        (_, true) => (u64::from(a as u32) * u64::from(b as u32)) >> 32,
    }
}
