//! Mathematical functions in double precision.

use std::f64::consts::{LN_2, LOG2_E};

use super::polynomial64;
use crate::builder::Val;

/// What the double nearest to ln 2 lacks.
const LN_2_LOW: f64 = 2.319_046_813_846_299_6e-17;
/// What the double nearest to log2 e lacks.
const LOG2_E_LOW: f64 = 2.035_527_374_093_103_3e-17;
/// ln 2 with so few digits that its product with any exponent is exact, and the rest.
const LN_2_SHORT: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
const LN_2_REST: f64 = (LN_2 - LN_2_SHORT) + LN_2_LOW;
/// The bits of the square root of a half, where the significand is cut.
const ROOT_OF_HALF: i64 = 0x3fe6_a09e_667f_3bcd;

/// A power of e as `(1 + less) * 2^n`.
struct Power<'k> {
    less: Val<'k, f64>,
    n: Val<'k, f64>,
}

/// e^x: x is split into a whole number of ln 2 and a rest of at most half of it.
fn power(x: Val<'_, f64>) -> Power<'_> {
    let n = (x * LOG2_E).round();
    let rest = (-n).mul_add(LN_2, x);
    let rest = (-n).mul_add(LN_2_LOW, rest);
    Power { less: rest * polynomial64(rest, &reciprocals()), n }
}

/// 1/14! to 1/1!: the Taylor coefficients of (e^x - 1) / x, the highest first.
fn reciprocals() -> [f64; 14] {
    let mut list = [1.0; 14];
    let mut factorial = 1.0;
    for (at, slot) in list.iter_mut().rev().enumerate() {
        factorial *= (at + 1) as f64;
        *slot = 1.0 / factorial;
    }
    list
}

pub(super) fn exp(x: Val<'_, f64>) -> Val<'_, f64> {
    let Power { less, n } = power(x.max(-760.0).min(720.0));
    keep_nan(x, scaled(less + 1.0, n))
}

pub(super) fn exp2(x: Val<'_, f64>) -> Val<'_, f64> {
    let inside = x.max(-1100.0).min(1100.0);
    let n = inside.round();
    let rest = inside - n;
    // The product with ln 2 is kept as a sum of two doubles; the small one enters to first order.
    let high = rest * LN_2;
    let low = rest.mul_add(LN_2, -high) + rest * LN_2_LOW;
    let power = high.mul_add(polynomial64(high, &reciprocals()), 1.0);
    keep_nan(x, scaled(power.mul_add(low, power), n))
}

/// tanh x = t / (t + 2) with t = e^2x - 1; for small x it is x itself.
pub(super) fn tanh(x: Val<'_, f64>) -> Val<'_, f64> {
    let Power { less, n } = power(x.abs().min(22.0) * 2.0);
    let scale = ((n.to::<i64>() + 1023i64) << 52u32).bits_as::<f64>();
    let t = scale.mul_add(less, scale - 1.0);
    let quotient = t / (t + 2.0);
    let signed = x.lt(0.0).select::<f64>(-quotient, quotient);
    let tiny = x.abs().lt(f64::from_bits(0x3e30_0000_0000_0000));
    keep_nan(x, tiny.select::<f64>(x, signed))
}

/// A number as `2^exponent * (1 + f)`, with `1 + f` between the square roots of a half and of two.
struct Split<'k> {
    exponent: Val<'k, f64>,
    f: Val<'k, f64>,
    /// `f - ln(1 + f)`.
    less: Val<'k, f64>,
}

fn split(x: Val<'_, f64>) -> Split<'_> {
    let small = x.lt(f64::MIN_POSITIVE);
    let normal = small.select::<f64>(x * (1u64 << 54) as f64, x);
    let bits = normal.bits_as::<i64>();
    let exponent = (bits - ROOT_OF_HALF) >> 52u32;
    let f = (bits - (exponent << 52u32)).bits_as::<f64>() - 1.0;
    let exponent = small.select::<i64>(exponent - 54, exponent).to::<f64>();
    // ln(1 + f) = 2 atanh(s) = f - (f^2/2 - s (f^2/2 + R(s^2))), which keeps all digits of f.
    let s = f / (f + 2.0);
    let z = s * s;
    let series = [23.0, 21.0, 19.0, 17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0].map(|n| 2.0 / n);
    let series = z * polynomial64(z, &series);
    let square = f * f * 0.5;
    let less = square - s * (square + series);
    Split { exponent, f, less }
}

pub(super) fn log(x: Val<'_, f64>) -> Val<'_, f64> {
    let Split { exponent, f, less } = split(x);
    let low = exponent.mul_add(LN_2_REST, -less) + f;
    with_edges(x, exponent.mul_add(LN_2_SHORT, low))
}

pub(super) fn log2(x: Val<'_, f64>) -> Val<'_, f64> {
    let Split { exponent, f, less } = split(x);
    // ln(1 + f) as the sum of two doubles, times log2 e.
    let high = f - less;
    let low = (f - high) - less;
    let product = high * LOG2_E;
    let rest = high.mul_add(LOG2_E, -product) + high.mul_add(LOG2_E_LOW, low * LOG2_E);
    let sum = exponent + product;
    let lost = (exponent - sum) + product;
    with_edges(x, sum + (lost + rest))
}

/// `value * 2^n` for a whole n, in two steps so that the result may be infinite or subnormal.
fn scaled<'k>(value: Val<'k, f64>, n: Val<'k, f64>) -> Val<'k, f64> {
    let n = n.to::<i64>();
    let half = n >> 1u32;
    let power = |n: Val<'k, i64>| ((n + 1023) << 52u32).bits_as::<f64>();
    value * power(half) * power(n - half)
}

/// NaN where the argument is one.
fn keep_nan<'k>(x: Val<'k, f64>, result: Val<'k, f64>) -> Val<'k, f64> {
    x.ne(x).select::<f64>(x, result)
}

/// What the series does not answer: zero, infinity, negative numbers, NaN.
fn with_edges<'k>(x: Val<'k, f64>, result: Val<'k, f64>) -> Val<'k, f64> {
    let result = x.eq(f64::INFINITY).select::<f64>(f64::INFINITY, result);
    let result = x.eq(0.0).select::<f64>(f64::NEG_INFINITY, result);
    x.ge(0.0).select::<f64>(result, f64::NAN)
}
