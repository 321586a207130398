//! Several small integers in one register.

use super::{Alu, lanes};
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

#[inline(always)]
fn halves(a: u64, b: u64, f: impl Fn(u16, u16) -> u16) -> u64 {
    u64::from(f(a as u16, b as u16)) | u64::from(f((a >> 16) as u16, (b >> 16) as u16)) << 16
}
