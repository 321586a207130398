//! Logarithms.

use std::f64::consts::{LN_2, LOG2_E};

use super::polynomial;
use crate::builder::Val;

/// ln 2 as the sum of two singles, the first with so few digits that its product with any exponent is exact.
const LN_2_HIGH: f32 = f32::from_bits(0x3f31_7000);
const LN_2_LOW: f32 = (LN_2 - LN_2_HIGH as f64) as f32;

const LOG2_E_HIGH: f32 = LOG2_E as f32;
const LOG2_E_LOW: f32 = (LOG2_E - LOG2_E_HIGH as f64) as f32;

/// The bits of the square root of a half, where the significand is cut.
const ROOT_OF_HALF: i32 = 0x3f35_04f3;

/// A number as `2^exponent * (1 + f)`, with `1 + f` between the square roots of a half and of two.
struct Split<'k> {
    exponent: Val<'k, f32>,
    f: Val<'k, f32>,
    /// `f - ln(1 + f)`.
    less: Val<'k, f32>,
}

fn split(x: Val<'_, f32>) -> Split<'_> {
    let small = x.lt(f32::MIN_POSITIVE);
    let normal = small.select::<f32>(x * (1u32 << 25) as f32, x);
    let bits = normal.bits_as::<i32>();
    let exponent = (bits - ROOT_OF_HALF) >> 23u32;
    let f = (bits - (exponent << 23u32)).bits_as::<f32>() - 1.0;
    let exponent = small.select::<i32>(exponent - 25, exponent).to::<f32>();
    // ln(1 + f) = 2 atanh(s) = f - (f^2/2 - s (f^2/2 + R(s^2))), which keeps all digits of f.
    let s = f / (f + 2.0);
    let z = s * s;
    let series = z * polynomial(z, &[2.0 / 11.0, 2.0 / 9.0, 2.0 / 7.0, 2.0 / 5.0, 2.0 / 3.0]);
    let square = f * f * 0.5;
    let less = square - s * (square + series);
    Split { exponent, f, less }
}

/// The natural logarithm.
pub(super) fn log(x: Val<'_, f32>) -> Val<'_, f32> {
    let Split { exponent, f, less } = split(x);
    let low = exponent.mul_add(LN_2_LOW, -less) + f;
    with_edges(x, exponent.mul_add(LN_2_HIGH, low))
}

/// The logarithm to base 2.
pub(super) fn log2(x: Val<'_, f32>) -> Val<'_, f32> {
    let Split { exponent, f, less } = split(x);
    // ln(1 + f) as the sum of two singles, times log2 e.
    let high = f - less;
    let low = (f - high) - less;
    let product = high * LOG2_E_HIGH;
    let rest = high.mul_add(LOG2_E_HIGH, -product) + high.mul_add(LOG2_E_LOW, low * LOG2_E_HIGH);
    // The larger of exponent and product is added to first, so that what the sum loses is known.
    let sum = exponent + product;
    let lost = (exponent - sum) + product;
    with_edges(x, sum + (lost + rest))
}

/// What the series does not answer: zero, infinity, negative numbers, NaN.
fn with_edges<'k>(x: Val<'k, f32>, result: Val<'k, f32>) -> Val<'k, f32> {
    let result = x.eq(f32::INFINITY).select::<f32>(f32::INFINITY, result);
    let result = x.eq(0.0).select::<f32>(f32::NEG_INFINITY, result);
    x.ge(0.0).select::<f32>(result, f32::NAN)
}
