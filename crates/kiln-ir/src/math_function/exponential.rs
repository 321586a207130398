//! Powers and the hyperbolic tangent.

use std::f64::consts::LN_2;

use super::{polynomial, polynomial64};
use crate::builder::Val;

/// Taylor coefficients of e^x, the highest first: 1/7! to 1.
const EXP: [f32; 8] = [1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0];

/// The natural logarithm of 2 as the sum of two singles.
const LN_2_HIGH: f32 = LN_2 as f32;
const LN_2_LOW: f32 = (LN_2 - LN_2_HIGH as f64) as f32;

/// e^x: x is split into a whole number of ln 2 and a rest of at most half of it.
pub(super) fn exp(x: Val<'_, f32>) -> Val<'_, f32> {
    let inside = x.max(-120.0).min(120.0);
    let n = (inside * std::f32::consts::LOG2_E).round();
    let rest = (-n).mul_add(LN_2_HIGH, inside);
    let rest = (-n).mul_add(LN_2_LOW, rest);
    keep_nan(x, scaled(polynomial(rest, &EXP), n))
}

/// 2^x: x is split into a whole number and a rest of at most a half.
pub(super) fn exp2(x: Val<'_, f32>) -> Val<'_, f32> {
    let inside = x.max(-170.0).min(170.0);
    let n = inside.round();
    let rest = inside - n;
    // The product with ln 2 is kept as a sum of two singles; the small one enters to first order.
    let high = rest * LN_2_HIGH;
    let low = rest.mul_add(LN_2_HIGH, -high) + rest * LN_2_LOW;
    let power = polynomial(high, &EXP);
    keep_nan(x, scaled(power.mul_add(low, power), n))
}

/// tanh x = (e^2x - 1) / (e^2x + 1), in double precision; for small x it is x itself.
pub(super) fn tanh(x: Val<'_, f32>) -> Val<'_, f32> {
    let size = x.abs().min(20.0);
    let twice = size.to::<f64>() * 2.0;
    let n = (twice * std::f64::consts::LOG2_E).round();
    let rest = (-n).mul_add(LN_2, twice);
    let mut coefficients = [1.0f64; 14];
    let mut factorial = 1.0;
    for power in 1..coefficients.len() {
        factorial *= power as f64;
        coefficients[13 - power] = 1.0 / factorial;
    }
    let power = polynomial64(rest, &coefficients);
    let scale = ((n.to::<i64>() + 1023i64) << 52u32).bits_as::<f64>();
    let power = power * scale;
    let quotient = ((power - 1.0) / (power + 1.0)).to::<f32>();
    let signed = x.lt(0.0).select::<f32>(-quotient, quotient);
    let tiny = x.abs().lt(1.0 / 4096.0);
    keep_nan(x, tiny.select::<f32>(x, signed))
}

/// `value * 2^n` for a whole n, in two steps so that the result may be infinite or subnormal.
fn scaled<'k>(value: Val<'k, f32>, n: Val<'k, f32>) -> Val<'k, f32> {
    let n = n.to::<i32>();
    let half = n >> 1u32;
    let power = |n: Val<'k, i32>| ((n + 127) << 23u32).bits_as::<f32>();
    value * power(half) * power(n - half)
}

/// NaN where the argument is one.
fn keep_nan<'k>(x: Val<'k, f32>, result: Val<'k, f32>) -> Val<'k, f32> {
    x.ne(x).select::<f32>(x, result)
}
