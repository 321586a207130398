//! Scalar video instructions: one operation on integers of 32 bits that parts of registers were extended to.
//!
//! What an operation needs beside its operands stands in the fourth one, a constant, so that no other operation pays for it.

use super::packed::{Small, SmallOp};
use super::{Alu, Mode, lanes};

/// What a scalar video instruction does to two integers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum VideoOp {
    Small(SmallOp),
    ShiftLeft { wrap: bool },
    ShiftRight { wrap: bool },
}

/// `op` on two integers. The fourth operand is the number of bits that a saturated result has.
pub(crate) fn scalar(op: VideoOp) -> Option<Alu> {
    macro_rules! small {
        ($($op:ident),*) => {
            match op {
                $(VideoOp::Small(SmallOp::$op) => lanes!(mode, |a, b, _c, d| {
                    finish(combine(SmallOp::$op, a, b, mode), d, mode)
                }),)*
                VideoOp::Small(SmallOp::Average) => return None,
                VideoOp::ShiftLeft { wrap: true } => {
                    lanes!(mode, |a, b, _c, d| finish(value(a, mode.small.a_signed) << (b & 31), d, mode))
                }
                VideoOp::ShiftLeft { wrap: false } => {
                    lanes!(mode, |a, b, _c, d| finish(value(a, mode.small.a_signed) << b.min(32), d, mode))
                }
                VideoOp::ShiftRight { wrap: true } => {
                    lanes!(mode, |a, b, _c, d| finish(value(a, mode.small.a_signed) >> (b & 31), d, mode))
                }
                VideoOp::ShiftRight { wrap: false } => {
                    lanes!(mode, |a, b, _c, d| finish(value(a, mode.small.a_signed) >> b.min(32), d, mode))
                }
            }
        };
    }
    Some(small!(
        Add,
        Subtract,
        Difference,
        Minimum,
        Maximum,
        Equal,
        NotEqual,
        Less,
        LessOrEqual,
        Greater,
        GreaterOrEqual
    ))
}

fn combine(op: SmallOp, a: u64, b: u64, mode: Mode) -> i64 {
    let Small { a_signed, b_signed, .. } = mode.small;
    let (a, b) = (value(a, a_signed), value(b, b_signed));
    match op {
        SmallOp::Add => a + b,
        SmallOp::Subtract => a - b,
        SmallOp::Average => (a + b + (a + b).signum()) / 2,
        SmallOp::Difference => (a - b).abs(),
        SmallOp::Minimum => a.min(b),
        SmallOp::Maximum => a.max(b),
        SmallOp::Equal => i64::from(a == b),
        SmallOp::NotEqual => i64::from(a != b),
        SmallOp::Less => i64::from(a < b),
        SmallOp::LessOrEqual => i64::from(a <= b),
        SmallOp::Greater => i64::from(a > b),
        SmallOp::GreaterOrEqual => i64::from(a >= b),
    }
}

fn value(bits: u64, signed: bool) -> i64 {
    if signed { i64::from(bits as i32) } else { i64::from(bits as u32) }
}

/// Saturates to the part of the destination that is written, if the instruction says so.
fn finish(result: i64, bits: u64, mode: Mode) -> u64 {
    let limits = match mode.small.to_signed {
        true => (-1i64 << (bits - 1), (1i64 << (bits - 1)) - 1),
        false => (0, (1i64 << bits) - 1),
    };
    let result = if mode.sat { result.clamp(limits.0, limits.1) } else { result };
    u64::from(result as u32)
}

/// How `vmad` treats its operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Product {
    /// Whether the product is subtracted.
    pub(crate) negates_product: bool,
    /// Whether the third operand is subtracted.
    pub(crate) negates_sum: bool,
    /// Whether one is added.
    pub(crate) plus_one: bool,
    /// By how many bits the result is shifted right.
    pub(crate) shift: u8,
}

impl Product {
    /// The bits of the fourth operand.
    pub(crate) fn bits(self) -> u64 {
        u64::from(self.negates_product)
            | u64::from(self.negates_sum) << 1
            | u64::from(self.plus_one) << 2
            | u64::from(self.shift) << 8
    }

    fn of(bits: u64) -> Self {
        Self {
            negates_product: bits & 1 != 0,
            negates_sum: bits & 2 != 0,
            plus_one: bits & 4 != 0,
            shift: (bits >> 8) as u8,
        }
    }
}

/// `vmad`: the product of the first two operands and the third. The fourth is a [`Product`].
pub(crate) fn product() -> Alu {
    lanes!(mode, |a, b, c, d| multiply(a, b, c, Product::of(d), mode))
}

fn multiply(a: u64, b: u64, c: u64, how: Product, mode: Mode) -> u64 {
    let Small { a_signed, b_signed, .. } = mode.small;
    let is_signed = a_signed || b_signed || how.negates_product || how.negates_sum;
    let product = i128::from(value(a, a_signed)) * i128::from(value(b, b_signed));
    let product = if how.negates_product { -product } else { product };
    let c = i128::from(value(c, is_signed));
    let c = if how.negates_sum { -c } else { c };
    let sum = product + c + i128::from(how.plus_one);
    let result = sum >> how.shift;
    let result = match (mode.sat, is_signed) {
        (false, _) => result,
        (true, true) => result.clamp(i128::from(i32::MIN), i128::from(i32::MAX)),
        (true, false) => result.clamp(0, i128::from(u32::MAX)),
    };
    u64::from(result as u32)
}
