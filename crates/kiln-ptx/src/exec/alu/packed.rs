//! Several small integers in one register.

use super::{Alu, Mode, lanes};
use crate::ScalarType;

/// The sum of four products of bytes, plus `c`.
pub(crate) fn dot4(a_signed: bool, b_signed: bool) -> Alu {
    macro_rules! dot {
        ($a:expr, $b:expr) => {
            lanes!(|a, b, c| {
                let sum = (0..4).fold(0i32, |sum, place| {
                    sum.wrapping_add(byte(a, place, $a).wrapping_mul(byte(b, place, $b)))
                });
                u64::from((c as u32).wrapping_add(sum as u32))
            })
        };
    }
    match (a_signed, b_signed) {
        (false, false) => dot!(false, false),
        (false, true) => dot!(false, true),
        (true, false) => dot!(true, false),
        (true, true) => dot!(true, true),
    }
}

/// The sum of two products of a half word and a byte, plus `c`; the bytes are the lower or the upper pair.
pub(crate) fn dot2(a_signed: bool, b_signed: bool, high: bool) -> Alu {
    macro_rules! dot {
        ($a:expr, $b:expr, $from:expr) => {
            lanes!(|a, b, c| {
                let sum = (0..2).fold(0i32, |sum, place| {
                    sum.wrapping_add(word(a, place, $a).wrapping_mul(byte(b, place + $from, $b)))
                });
                u64::from((c as u32).wrapping_add(sum as u32))
            })
        };
    }
    match (a_signed, b_signed, high) {
        (false, false, false) => dot!(false, false, 0),
        (false, true, false) => dot!(false, true, 0),
        (true, false, false) => dot!(true, false, 0),
        (true, true, false) => dot!(true, true, 0),
        (false, false, true) => dot!(false, false, 2),
        (false, true, true) => dot!(false, true, 2),
        (true, false, true) => dot!(true, false, 2),
        (true, true, true) => dot!(true, true, 2),
    }
}

fn byte(x: u64, place: u32, signed: bool) -> i32 {
    let byte = (x >> (8 * place)) as u8;
    if signed { i32::from(byte as i8) } else { i32::from(byte) }
}

fn word(x: u64, place: u32, signed: bool) -> i32 {
    let word = (x >> (16 * place)) as u16;
    if signed { i32::from(word as i16) } else { i32::from(word) }
}

/// What is done to each half of a packed pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PairOp {
    Add,
    Minimum,
    Maximum,
}

/// `op` on both 16-bit halves; with `relu` a negative result is 0.
pub(crate) fn pair(op: PairOp, ty: ScalarType, relu: bool) -> Option<Alu> {
    Some(match (op, ty, relu) {
        (PairOp::Add, ScalarType::U16x2 | ScalarType::S16x2, false) => {
            lanes!(|a, b| halves(a, b, |x, y| x.wrapping_add(y)))
        }
        (PairOp::Minimum, ScalarType::U16x2, false) => lanes!(|a, b| halves(a, b, |x, y| x.min(y))),
        (PairOp::Maximum, ScalarType::U16x2, false) => lanes!(|a, b| halves(a, b, |x, y| x.max(y))),
        (PairOp::Minimum, ScalarType::S16x2, false) => {
            lanes!(|a, b| halves(a, b, |x, y| (x as i16).min(y as i16) as u16))
        }
        (PairOp::Maximum, ScalarType::S16x2, false) => {
            lanes!(|a, b| halves(a, b, |x, y| (x as i16).max(y as i16) as u16))
        }
        (PairOp::Minimum, ScalarType::S16x2, true) => {
            lanes!(|a, b| halves(a, b, |x, y| (x as i16).min(y as i16).max(0) as u16))
        }
        (PairOp::Maximum, ScalarType::S16x2, true) => {
            lanes!(|a, b| halves(a, b, |x, y| (x as i16).max(y as i16).max(0) as u16))
        }
        _ => return None,
    })
}

/// What a video instruction does to each of two or four integers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SmallOp {
    Add,
    Subtract,
    Average,
    Difference,
    Minimum,
    Maximum,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// The types and modifiers of a video instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Small {
    pub(crate) a_signed: bool,
    pub(crate) b_signed: bool,
    pub(crate) to_signed: bool,
    /// Whether the results are added up, together with the third operand.
    pub(crate) sum: bool,
}

/// `op` on four bytes or two half words, as the mode says.
pub(crate) fn small(op: SmallOp, quad: bool) -> Alu {
    macro_rules! by_op {
        ($($op:ident),*) => {
            match (op, quad) {
                $((SmallOp::$op, true) => lanes!(mode, |a, b, c| each_small(SmallOp::$op, 8, a, b, c, mode)),
                (SmallOp::$op, false) => lanes!(mode, |a, b, c| each_small(SmallOp::$op, 16, a, b, c, mode)),)*
            }
        };
    }
    by_op!(
        Add,
        Subtract,
        Average,
        Difference,
        Minimum,
        Maximum,
        Equal,
        NotEqual,
        Less,
        LessOrEqual,
        Greater,
        GreaterOrEqual
    )
}

fn each_small(op: SmallOp, bits: u32, a: u64, b: u64, c: u64, mode: Mode) -> u64 {
    let Small { a_signed, b_signed, to_signed, sum } = mode.small;
    let read = |x: u64, at: u32, signed: bool| {
        let part = (x >> at) as u32 & (u32::MAX >> (32 - bits));
        if signed { (part << (32 - bits)) as i32 >> (32 - bits) } else { part as i32 }
    };
    let range = if to_signed { (-1 << (bits - 1), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) };
    let (mut packed, mut total) = (0, c as u32);
    for at in (0..32).step_by(bits as usize) {
        let (x, y) = (read(a, at, a_signed), read(b, at, b_signed));
        let result = match op {
            SmallOp::Add => x + y,
            SmallOp::Subtract => x - y,
            // Halves are rounded away from zero.
            SmallOp::Average => (x + y + (x + y).signum()) / 2,
            SmallOp::Difference => (x - y).abs(),
            SmallOp::Minimum => x.min(y),
            SmallOp::Maximum => x.max(y),
            SmallOp::Equal => i32::from(x == y),
            SmallOp::NotEqual => i32::from(x != y),
            SmallOp::Less => i32::from(x < y),
            SmallOp::LessOrEqual => i32::from(x <= y),
            SmallOp::Greater => i32::from(x > y),
            SmallOp::GreaterOrEqual => i32::from(x >= y),
        };
        let result = if mode.sat { result.clamp(range.0, range.1) } else { result };
        packed |= u64::from(result as u32 & (u32::MAX >> (32 - bits))) << at;
        total = total.wrapping_add(result as u32);
    }
    if sum { u64::from(total) } else { packed }
}

#[inline(always)]
fn halves(a: u64, b: u64, f: impl Fn(u16, u16) -> u16) -> u64 {
    u64::from(f(a as u16, b as u16)) | u64::from(f((a >> 16) as u16, (b >> 16) as u16)) << 16
}
