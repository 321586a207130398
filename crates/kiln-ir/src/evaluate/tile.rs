//! Products and sums of tiles.

use super::Mode;
use super::convert::convert;
use super::{fma, integer};
use crate::scalar_type::Type;

/// Tiles keep subnormals.
const MODE: Mode = Mode { flush: false };
/// Bits of an `f32` that TF32 does not have, and half of the lowest bit that it has.
const TF32_DROPPED_BITS: u64 = 0x1fff;
const TF32_HALF: u64 = 0x1000;
const F32_INFINITY: u64 = 0x7f80_0000;

/// An element as it is multiplied: of 16 bits as an `f32`, an `f32` rounded to TF32, others as they are.
pub(crate) fn factor(ty: Type, bits: u64) -> u64 {
    match ty {
        Type::F16 | Type::Bf16 => convert(ty, Type::F32, bits, MODE),
        Type::F32 => tf32(bits),
        _ => bits,
    }
}

/// To nearest, ties away from zero. What is too large becomes infinite; infinities and NaN stay.
fn tf32(bits: u64) -> u64 {
    match bits & 0x7fff_ffff < F32_INFINITY {
        true => (bits + TF32_HALF) & !TF32_DROPPED_BITS,
        false => bits,
    }
}

/// A sum with one more product of two factors of a type.
pub(crate) fn add_product(ty: Type, [a, b]: [u64; 2], sum: u64) -> u64 {
    match ty {
        Type::I8 => {
            let product = integer::value(ty, a) * integer::value(ty, b);
            (integer::value(Type::I32, sum) + product) as u64 & Type::I32.mask()
        }
        Type::F64 => fma(Type::F64, [a, b, sum], MODE),
        _ => fma(Type::F32, [a, b, sum], MODE),
    }
}
