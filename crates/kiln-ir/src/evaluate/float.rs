//! Floats: `f32` and `f64` as the host computes them, halves by way of `f64`.

use super::half::{self, Half};
use crate::literal::Literal;
use crate::operation::{BinaryOp, UnaryOp};
use crate::scalar_type::Type;

/// The value of some bits.
pub(crate) fn value(ty: Type, bits: u64) -> f64 {
    Literal::new(ty, bits).as_float()
}

/// The format of a 16-bit float.
fn half_of(ty: Type) -> Option<Half> {
    match ty {
        Type::F16 => Some(half::F16),
        Type::Bf16 => Some(half::BF16),
        _ => None,
    }
}

/// The bit that is the sign.
fn sign(ty: Type) -> u64 {
    1 << (ty.bits() - 1)
}

pub(crate) fn unary(op: UnaryOp, ty: Type, a: u64) -> u64 {
    let number = value(ty, a);
    let result = match op {
        UnaryOp::Neg => return a ^ sign(ty),
        UnaryOp::Abs => return a & !sign(ty),
        // A root in double precision is so precise that rounding it again gives the root in any smaller format.
        UnaryOp::Sqrt => number.sqrt(),
        UnaryOp::Floor => number.floor(),
        UnaryOp::Ceil => number.ceil(),
        UnaryOp::Trunc => number.trunc(),
        UnaryOp::Round => number.round_ties_even(),
        // Only for integers, which the verifier sees to.
        UnaryOp::Not
        | UnaryOp::CountOnes
        | UnaryOp::LeadingZeros
        | UnaryOp::TrailingZeros
        | UnaryOp::ReverseBits => number,
    };
    Literal::float(ty, result).bits()
}

pub(crate) fn binary(op: BinaryOp, ty: Type, a: u64, b: u64) -> u64 {
    if let BinaryOp::Min | BinaryOp::Max = op {
        return extreme(ty, a, b, op == BinaryOp::Min);
    }
    // Double precision has more than twice the digits of the smaller formats, so rounding a sum, product or quotient
    // a second time gives what rounding it once would have given.
    let (x, y) = (value(ty, a), value(ty, b));
    let result = match op {
        BinaryOp::Add => x + y,
        BinaryOp::Sub => x - y,
        BinaryOp::Mul => x * y,
        _ => x / y,
    };
    Literal::float(ty, result).bits()
}

pub(crate) fn fma(ty: Type, bits: [u64; 3]) -> u64 {
    let [a, b, c] = bits.map(|bits| value(ty, bits));
    match half_of(ty) {
        Some(half) => half.fused(a, b, c),
        None if ty == Type::F32 => u64::from((a as f32).mul_add(b as f32, c as f32).to_bits()),
        None => a.mul_add(b, c).to_bits(),
    }
}

/// The smaller or larger of two: a NaN loses, and `-0.0` is below `0.0`.
fn extreme(ty: Type, a: u64, b: u64, smaller: bool) -> u64 {
    let (x, y) = (value(ty, a), value(ty, b));
    if x.is_nan() {
        return b;
    }
    if y.is_nan() {
        return a;
    }
    if (x.total_cmp(&y).is_lt()) == smaller { a } else { b }
}
