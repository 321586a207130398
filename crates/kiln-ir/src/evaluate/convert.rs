//! Conversions between types.

use super::Mode;
use super::{float, integer};
use crate::literal::Literal;
use crate::scalar_type::Type;

/// The same number in another type.
pub(crate) fn convert(from: Type, to: Type, a: u64, mode: Mode) -> u64 {
    let a = mode.apply(from, a);
    let result = match (from.is_float(), to) {
        (true, Type::Bool) => u64::from(float::value(from, a) != 0.0),
        (false, Type::Bool) => u64::from(a != 0),
        (true, _) if to.is_float() => Literal::float(to, float::value(from, a)).bits(),
        (true, _) => to_integer(to, float::value(from, a)),
        (false, _) if to.is_float() => integer_to_float(to, integer::value(from, a)),
        (false, _) => integer::value(from, a) as u64 & to.mask(),
    };
    mode.apply(to, result)
}

/// The nearest integer toward zero; the ends of the type stand for everything beyond them, 0 for NaN.
fn to_integer(to: Type, number: f64) -> u64 {
    let (least, most) = match to.is_signed() {
        true => (-1i128 << (to.bits() - 1), (1i128 << (to.bits() - 1)) - 1),
        false => (0, (1i128 << to.bits()) - 1),
    };
    // This cast cuts, saturates and makes NaN 0, in a type with more room than any of ours.
    (number as i128).clamp(least, most) as u64 & to.mask()
}

/// An integer as a float, rounded once.
fn integer_to_float(to: Type, number: i128) -> u64 {
    match to {
        Type::F32 => u64::from((number as f32).to_bits()),
        Type::F64 => (number as f64).to_bits(),
        // Not every integer of 64 bits has a double. One that is odd in the last place instead of rounded keeps apart
        // what a second rounding must keep apart.
        _ => {
            let dropped = (i128::BITS - number.unsigned_abs().leading_zeros()).saturating_sub(53);
            let low = number & ((1i128 << dropped) - 1);
            let odd = if low == 0 { number } else { (number - low) | 1i128 << dropped };
            Literal::float(to, odd as f64).bits()
        }
    }
}
