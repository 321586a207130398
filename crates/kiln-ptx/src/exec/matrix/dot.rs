//! One element of a matrix product, as the tensor cores of an H200 compute it.
//!
//! Found by comparing with the device, bit for bit, over random, tiny, huge, zero, infinite and NaN operands:
//!
//! - `f16`, `bf16`, `tf32`: the products are exact. They and C are cut off (not rounded) at 25 bits below the largest exponent among them
//!   and summed exactly. The sum is cut off to `f32`, or rounded to the nearest `f16`.
//! - `e4m3`, `e5m2`: the elements become `f16`. The first two of every four along k are summed as above, without C; the other two are
//!   added to that in the same way; then C is added, to nearest.
//! - `e4m3`, `e5m2` of `wgmma`: all products and C in one sum that is cut off at 13 bits below the largest exponent; of a sum in `f32` 13 bits
//!   behind the first remain. A subnormal element has the exponent of the smallest normal one of its type.
//! - `f64`: a chain of fused multiply-adds along k that starts with C.

use super::element::{Accumulator, MatrixElement};
use super::multiply::Multiply;
use crate::exec::alu::double::fused_bits;
use crate::exec::alu::float_format::{BF16, E4M3, Exact, F16, F32, Format, TF32, Value};
use crate::exec::alu::half::widen;
use crate::exec::alu::{Mode, Round, half};

/// Bits below the largest exponent that take part in a sum.
const FRACTION_BITS: i32 = 25;
/// The same for 8-bit floats of `wgmma`; so many remain of the result, too.
const NARROW_FRACTION_BITS: i32 = 13;

/// An element of A or B, taken apart once for all the sums it is part of.
#[derive(Clone, Copy)]
pub(super) struct Factor {
    kind: Kind,
    negative: bool,
    /// The exponent of the first bit of a normal number.
    exponent: i32,
    significand: u32,
    fraction_bits: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Finite,
    Infinite,
    Nan,
}

impl Factor {
    /// An element of A or B; of `wgmma` if products are summed at once.
    pub(super) fn of(element: MatrixElement, bits: u64, at_once: bool) -> Self {
        match element {
            MatrixElement::E4m3 if at_once => Self::in_format(E4M3, bits),
            MatrixElement::Bf16 => Self::in_format(BF16, bits),
            // The lowest 13 bits of a register are not read.
            MatrixElement::Tf32 => Self::in_format(TF32, bits >> 13 & 0x7_ffff),
            MatrixElement::E5m2 => Self::in_format(F16, bits << 8),
            MatrixElement::E4m3 => Self::in_format(F16, F16.pack(E4M3.unpack(bits), Round::Nearest)),
            _ => Self::in_format(F16, bits),
        }
    }

    fn in_format(format: Format, bits: u64) -> Self {
        let none = Self {
            kind: Kind::Finite,
            negative: bits & format.sign_bit() != 0,
            exponent: 0,
            significand: 0,
            fraction_bits: format.fraction_bits,
        };
        match format.unpack(bits) {
            Value::Nan => Self { kind: Kind::Nan, ..none },
            Value::Infinite { .. } => Self { kind: Kind::Infinite, ..none },
            Value::Zero { .. } => none,
            Value::Finite(exact) => Self {
                exponent: exact.exponent + format.fraction_bits as i32,
                significand: exact.significand as u32,
                ..none
            },
        }
    }

    fn is_zero(&self) -> bool {
        self.kind == Kind::Finite && self.significand == 0
    }
}

/// A sum in progress: what has to be known before terms can be aligned.
struct Sum {
    largest: i32,
    /// Bits below that that take part.
    fraction_bits: i32,
    is_nan: bool,
    /// An infinity of either sign.
    positive: bool,
    negative: bool,
}

impl Sum {
    fn new(fraction_bits: i32) -> Self {
        Self { largest: i32::MIN, fraction_bits, is_nan: false, positive: false, negative: false }
    }

    fn see_product(&mut self, a: &Factor, b: &Factor) {
        match (a.kind, b.kind) {
            (Kind::Finite, Kind::Finite) if a.significand != 0 && b.significand != 0 => {
                self.largest = self.largest.max(a.exponent + b.exponent);
            }
            (Kind::Finite, Kind::Finite) => {}
            (Kind::Nan, _) | (_, Kind::Nan) => self.is_nan = true,
            _ if a.is_zero() || b.is_zero() => self.is_nan = true,
            _ => self.see_infinity(a.negative != b.negative),
        }
    }

    fn see_single(&mut self, c: &Factor) {
        match c.kind {
            Kind::Finite if c.significand != 0 => self.largest = self.largest.max(c.exponent),
            Kind::Finite => {}
            Kind::Nan => self.is_nan = true,
            Kind::Infinite => self.see_infinity(c.negative),
        }
    }

    fn see_infinity(&mut self, negative: bool) {
        if negative { self.negative = true } else { self.positive = true }
    }

    /// What the sum is without adding anything up.
    fn special(&self, format: Format) -> Option<u64> {
        if self.is_nan || self.positive && self.negative {
            Some(format.nan)
        } else if self.positive || self.negative {
            Some(format.infinity(self.negative))
        } else if self.largest == i32::MIN {
            Some(0)
        } else {
            None
        }
    }

    /// A term in units of the last bit that counts, cut off.
    #[inline]
    fn aligned(&self, negative: bool, exponent: i32, significand: u64, fraction_bits: u32) -> i64 {
        let shift = exponent - fraction_bits as i32 + self.fraction_bits - self.largest;
        let magnitude = if shift >= 0 {
            significand << shift.min(63)
        } else {
            significand.checked_shr(-shift as u32).unwrap_or(0)
        };
        if negative { -(magnitude as i64) } else { magnitude as i64 }
    }
}

/// The products and `c` in one sum, in `format`.
fn fused(a: &[Factor], b: &[Factor], chosen: impl Fn(usize) -> bool, c: &Factor, format: Format) -> u64 {
    summed(a, b, chosen, c, (format, FRACTION_BITS))
}

fn summed(
    a: &[Factor],
    b: &[Factor],
    chosen: impl Fn(usize) -> bool,
    c: &Factor,
    (format, fraction_bits): (Format, i32),
) -> u64 {
    let mut sum = Sum::new(fraction_bits);
    let pairs = || a.iter().zip(b).enumerate().filter(|(at, _)| chosen(*at)).map(|(_, pair)| pair);
    pairs().for_each(|(a, b)| sum.see_product(a, b));
    sum.see_single(c);
    if let Some(bits) = sum.special(format) {
        return bits;
    }
    let products = pairs().map(|(a, b)| {
        let significand = u64::from(a.significand) * u64::from(b.significand);
        let fraction_bits = a.fraction_bits + b.fraction_bits;
        sum.aligned(a.negative != b.negative, a.exponent + b.exponent, significand, fraction_bits)
    });
    let total =
        products.sum::<i64>() + sum.aligned(c.negative, c.exponent, c.significand.into(), c.fraction_bits);
    let total = if fraction_bits == NARROW_FRACTION_BITS && format == F32 { narrowed(total) } else { total };
    finish(total, sum.largest - fraction_bits, format)
}

/// A sum without the bits that do not remain.
fn narrowed(total: i64) -> i64 {
    let bits = total.unsigned_abs().checked_ilog2().unwrap_or(0) as i32;
    let dropped = (bits - NARROW_FRACTION_BITS).max(0);
    let magnitude = (total.unsigned_abs() >> dropped << dropped) as i64;
    if total < 0 { -magnitude } else { magnitude }
}

/// `total * 2^exponent`: cut off in `f32`, rounded in `f16`.
fn finish(total: i64, exponent: i32, format: Format) -> u64 {
    let (negative, magnitude) = (total < 0, total.unsigned_abs());
    if magnitude == 0 {
        return 0;
    }
    let round = if format == F32 { Round::Zero } else { Round::Nearest };
    // A sum beyond the largest number is infinite although it is cut off otherwise.
    if format == F32 && magnitude.ilog2() as i32 + exponent > 127 {
        return format.infinity(negative);
    }
    format.round(Exact { negative, exponent, significand: magnitude.into() }, round)
}

/// One element of D in `f32` or `f16`.
pub(super) fn float(multiply: &Multiply, row: &[Factor], column: &[Factor], before: u64) -> u64 {
    let format = if multiply.sum == Accumulator::F16 { F16 } else { F32 };
    let c = Factor::in_format(format, before);
    if multiply.a.bits() != 8 {
        return fused(row, column, |_| true, &c, format);
    }
    if multiply.at_once {
        return summed(row, column, |_| true, &c, (format, NARROW_FRACTION_BITS));
    }
    let zero = Factor::in_format(format, 0);
    let first = fused(row, column, |at| at % 4 < 2, &zero, format);
    let both = fused(row, column, |at| at % 4 >= 2, &Factor::in_format(format, first), format);
    if format == F32 {
        let sum = f32::from_bits(both as u32) + f32::from_bits(before as u32);
        return if sum.is_nan() { F32.nan } else { sum.to_bits().into() };
    }
    half::narrow(F16, widen(F16, both) + widen(F16, before), Mode::default())
}

/// One element of D in `f64`.
pub(super) fn double(row: &[u64], column: &[u64], before: u64, round: Round) -> u64 {
    row.iter().zip(column).fold(before, |sum, (a, b)| fused_bits(*a, *b, sum, round))
}
