//! Integers: computed in 128 bits, where nothing wraps, and cut to their type.

use crate::literal::Literal;
use crate::operation::{BinaryOp, UnaryOp};
use crate::scalar_type::Type;

/// The value of some bits.
pub(crate) fn value(ty: Type, bits: u64) -> i128 {
    Literal::new(ty, bits).as_integer()
}

pub(crate) fn unary(op: UnaryOp, ty: Type, a: u64) -> u64 {
    let (width, number) = (ty.bits(), value(ty, a));
    let result = match op {
        UnaryOp::Neg => -number as u64,
        UnaryOp::Not => !a,
        UnaryOp::Abs => number.unsigned_abs() as u64,
        UnaryOp::CountOnes => return u64::from(a.count_ones()),
        UnaryOp::LeadingZeros => return u64::from(a.leading_zeros() - (64 - width)),
        UnaryOp::TrailingZeros => return u64::from(a.trailing_zeros().min(width)),
        UnaryOp::ReverseBits => a.reverse_bits() >> (64 - width),
        // Only for floats, which the verifier sees to.
        UnaryOp::Sqrt | UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Trunc | UnaryOp::Round => a,
    };
    result & ty.mask()
}

pub(crate) fn binary(op: BinaryOp, ty: Type, a: u64, b: u64) -> u64 {
    let width = ty.bits();
    let (x, y) = (value(ty, a), value(ty, b));
    // Shifts have a `u32` second, whatever the first is.
    let by = b as u32;
    let result = match op {
        BinaryOp::Add => (x + y) as u64,
        BinaryOp::Sub => (x - y) as u64,
        BinaryOp::Mul => x.wrapping_mul(y) as u64,
        BinaryOp::MulHi if ty == Type::U64 => ((u128::from(a) * u128::from(b)) >> 64) as u64,
        BinaryOp::MulHi => ((x * y) >> width) as u64,
        BinaryOp::Div => x.checked_div(y).unwrap_or(0) as u64,
        BinaryOp::Rem => x.checked_rem(y).unwrap_or(x) as u64,
        BinaryOp::Min => x.min(y) as u64,
        BinaryOp::Max => x.max(y) as u64,
        BinaryOp::And => a & b,
        BinaryOp::Or => a | b,
        BinaryOp::Xor => a ^ b,
        BinaryOp::Shl => {
            if by < width {
                a << by
            } else {
                0
            }
        }
        // The number is filled with its sign up to 128 bits, so 127 is far enough.
        BinaryOp::Shr => (x >> by.min(127)) as u64,
        BinaryOp::RotateLeft => rotate(ty, a, by % width),
        BinaryOp::RotateRight => rotate(ty, a, (width - by % width) % width),
    };
    result & ty.mask()
}

/// Bits moved up in a circle, by less than the width.
fn rotate(ty: Type, a: u64, by: u32) -> u64 {
    if by == 0 { a } else { a << by | a >> (ty.bits() - by) }
}
