//! `f64` arithmetic.

use super::float_format::F64;
use super::single::extreme;
use super::{Alu, Input, Round, exact, lanes};
use crate::exec::warp_register::{Column, each};
use kiln_lanes::LaneLoop;

#[inline(always)]
pub(crate) fn float(bits: u64) -> f64 {
    f64::from_bits(bits)
}

/// The bits of a result. Arithmetic hands on the payload of a NaN operand, made quiet: of the first in `order` that is
/// one. An invalid operation answers the NaN of the format.
#[inline(always)]
fn result(value: f64, operands: [u64; 3], order: [usize; 3]) -> u64 {
    if value.is_nan() { propagate(operands, order) } else { value.to_bits() }
}

#[cold]
fn propagate(operands: [u64; 3], order: [usize; 3]) -> u64 {
    order.map(|at| operands[at]).into_iter().find(|bits| F64.is_nan(*bits)).map_or(F64.nan, quiet)
}

/// What `min` and `max` answer when neither operand is a number.
fn both_nan(a: u64, b: u64) -> Option<u64> {
    (F64.is_nan(a) && F64.is_nan(b)).then(|| quiet(b))
}

fn quiet(bits: u64) -> u64 {
    bits | 1 << (F64.fraction_bits - 1)
}

/// `a * b + c`, rounded once.
pub(crate) fn fused_bits(a: u64, b: u64, c: u64, round: Round) -> u64 {
    let value = match round {
        Round::Nearest => float(a).mul_add(float(b), float(c)),
        _ => float(exact::fused(F64.unpack(a), F64.unpack(b), F64.unpack(c), F64, round)),
    };
    result(value, [a, b, c], [1, 2, 0])
}

/// One `f64` operation: on the host for nearest rounding, exactly otherwise.
macro_rules! double {
    ($arity:literal, $plain:expr, $exact:expr) => {
        double!($arity, [1, 2, 0], $plain, $exact)
    };
    ($arity:literal, $order:expr, $plain:expr, $exact:expr) => {{
        #[inline(always)]
        fn operands(input: &Input<'_>, lane: usize) -> [u64; 3] {
            let b = if $arity > 1 { input.b[lane] } else { 0 };
            [input.a[lane], b, if $arity > 2 { input.c[lane] } else { 0 }]
        }
        struct Lanes<'a>(&'a Input<'a>, &'a mut Column);
        impl LaneLoop for Lanes<'_> {
            type Output = ();
            #[inline(always)]
            fn run<const FUSED: bool>(self) {
                let Self(input, out) = self;
                let plain: fn(f64, f64, f64) -> f64 = $plain;
                each(input.mask, |lane| {
                    let bits = operands(input, lane);
                    out[lane] = result(plain(float(bits[0]), float(bits[1]), float(bits[2])), bits, $order);
                });
            }
        }
        fn run(input: &Input<'_>, out: &mut Column) {
            if input.mode.round == Round::Nearest {
                return input.set.run(Lanes(input, out));
            }
            let exact: fn([u64; 3], Round) -> u64 = $exact;
            each(input.mask, |lane| {
                let bits = operands(input, lane);
                out[lane] = result(float(exact(bits, input.mode.round)), bits, $order);
            });
        }
        run as Alu
    }};
}

/// `a + b`.
pub(crate) fn add() -> Alu {
    double!(2, |a, b, _| a + b, |[a, b, _], round| exact::add(F64.unpack(a), F64.unpack(b), F64, round))
}

/// `a - b`.
pub(crate) fn subtract() -> Alu {
    double!(2, |a, b, _| a - b, |[a, b, _], round| {
        exact::add(F64.unpack(a), F64.unpack(b ^ F64.sign_bit()), F64, round)
    })
}

/// `a * b`.
pub(crate) fn multiply() -> Alu {
    double!(2, |a, b, _| a * b, |[a, b, _], round| exact::multiply(F64.unpack(a), F64.unpack(b), F64, round))
}

/// `a * b + c`, rounded once.
pub(crate) fn fused() -> Alu {
    double!(3, |a, b, c| a.mul_add(b, c), |[a, b, c], round| {
        exact::fused(F64.unpack(a), F64.unpack(b), F64.unpack(c), F64, round)
    })
}

/// `a / b`.
pub(crate) fn divide() -> Alu {
    double!(2, [0, 1, 2], |a, b, _| a / b, |[a, b, _], round| exact::divide(
        F64.unpack(a),
        F64.unpack(b),
        F64,
        round
    ))
}

/// `1 / a`.
pub(crate) fn reciprocal() -> Alu {
    double!(1, |a, _, _| 1.0 / a, |[a, _, _], round| {
        exact::divide(F64.unpack(1.0f64.to_bits()), F64.unpack(a), F64, round)
    })
}

/// The square root of `a`.
pub(crate) fn root() -> Alu {
    double!(1, |a, _, _| a.sqrt(), |[a, _, _], round| exact::root(F64.unpack(a), F64, round))
}

/// `-a`.
pub(crate) fn negate() -> Alu {
    lanes!(|a| if F64.is_nan(a) { quiet(a) } else { a ^ F64.sign_bit() })
}

/// `|a|`.
pub(crate) fn absolute() -> Alu {
    lanes!(|a| if F64.is_nan(a) { quiet(a) } else { a & !F64.sign_bit() })
}

/// The smaller of `a` and `b`.
pub(crate) fn minimum() -> Alu {
    lanes!(mode, |a, b, _c| both_nan(a, b).unwrap_or_else(|| extreme(F64, a, b, mode, true)))
}

/// The larger of `a` and `b`.
pub(crate) fn maximum() -> Alu {
    lanes!(mode, |a, b, _c| both_nan(a, b).unwrap_or_else(|| extreme(F64, a, b, mode, false)))
}

/// The sign of `a` with the magnitude of `b`.
pub(crate) fn copy_sign() -> Alu {
    lanes!(|a, b| (a & F64.sign_bit()) | (b & !F64.sign_bit()))
}
