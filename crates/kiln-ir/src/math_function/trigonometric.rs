//! Sine and cosine.
//!
//! The angle is reduced to a quarter turn and a rest between -pi/4 and pi/4, whose series is summed in double precision
//! and rounded once. Angles too large for that are reduced with as many digits of 2/pi as their exponent reaches into.

use super::polynomial64;
use crate::builder::{KernelBuilder, Val};

/// pi/2 as the sum of two doubles.
const HALF_PI_HIGH: f64 = std::f64::consts::FRAC_PI_2;
const HALF_PI_LOW: f64 = f64::from_bits(0x3c91_a626_3314_5c07);
/// Angles up to here are reduced with two doubles.
const SIMPLE_LIMIT: f32 = (1u32 << 30) as f32;

/// The digits of 2/pi behind the point, 32 bits each.
const TWO_OVER_PI: [u32; 7] =
    [0xa2f9_836e, 0x4e44_1529, 0xfc27_57d1, 0xf534_ddc0, 0xdb62_9599, 0x3c43_9041, 0xfe51_63ab];

/// A quarter turn and what is left.
struct Reduced<'k> {
    quarter: Val<'k, u32>,
    rest: Val<'k, f64>,
}

pub(super) fn sin(x: Val<'_, f32>) -> Val<'_, f32> {
    let Reduced { quarter, rest } = reduce(x);
    let result = finish(quarter, rest);
    // The sine of a small angle is the angle, with its sign also when it is zero.
    let result = x.abs().lt(1.0 / 4096.0).select::<f32>(x, result);
    x.abs().lt(f32::INFINITY).select::<f32>(result, f32::NAN)
}

pub(super) fn cos(x: Val<'_, f32>) -> Val<'_, f32> {
    let Reduced { quarter, rest } = reduce(x);
    let result = finish(quarter + 1, rest);
    x.abs().lt(f32::INFINITY).select::<f32>(result, f32::NAN)
}

/// The sine after the angle was reduced.
fn finish<'k>(quarter: Val<'k, u32>, rest: Val<'k, f64>) -> Val<'k, f32> {
    let z = rest * rest;
    let sine = series(&[3, 5, 7, 9, 11, 13, 15]);
    let cosine = series(&[2, 4, 6, 8, 10, 12, 14]);
    let sine = (rest * z).mul_add(polynomial64(z, &sine), rest);
    let cosine = z.mul_add(polynomial64(z, &cosine), 1.0);
    let value = (quarter & 1u32).eq(0).select::<f64>(sine, cosine).to::<f32>();
    (quarter & 2u32).eq(0).select::<f32>(value, -value)
}

/// Coefficients with alternating signs, beginning with minus: `1/n!` for the given n, the highest first.
fn series(powers: &[u32; 7]) -> [f64; 7] {
    let mut coefficients = [0.0; 7];
    for (at, power) in powers.iter().enumerate() {
        let factorial: f64 = (1..=*power).map(f64::from).product();
        coefficients[6 - at] = if at % 2 == 0 { -1.0 / factorial } else { 1.0 / factorial };
    }
    coefficients
}

fn reduce(x: Val<'_, f32>) -> Reduced<'_> {
    let k = x.kernel;
    let wide = x.to::<f64>();
    let turns = (wide * std::f64::consts::FRAC_2_PI).round();
    let rest = (-turns).mul_add(HALF_PI_HIGH, wide);
    let rest = k.var((-turns).mul_add(HALF_PI_LOW, rest));
    let quarter = k.var(turns.to::<i64>().to::<u32>());
    k.if_(x.abs().gt(SIMPLE_LIMIT), || {
        let large = reduce_large(k, x.abs());
        let negative = x.lt(0.0);
        let turned = -large.quarter;
        quarter.set(negative.select::<u32>(turned, large.quarter));
        rest.set(negative.select::<f64>(-large.rest, large.rest));
    });
    Reduced { quarter: quarter.get(), rest: rest.get() }
}

/// `x * 2/pi` modulo 4 for a positive x, whose last digit is above the point: x is a whole number `m * 2^e`, and the
/// digits of 2/pi that make multiples of 4 with it are skipped.
fn reduce_large<'k>(k: &'k KernelBuilder, x: Val<'k, f32>) -> Reduced<'k> {
    let bits = x.bits_as::<u32>();
    let significand = ((bits & 0x007f_ffffu32) | 0x0080_0000u32).to::<u64>();
    // The first digit that matters has the weight 2^-(e-1) and is number e-2 from 0.
    let first = (bits >> 23u32) - (127 + 23 + 2);
    let (word, offset) = (first >> 5u32, first & 31u32);
    let digits = |ahead: usize| {
        let choose = |later: Val<'k, u32>, at: usize| {
            word.eq(at as u32).select::<u32>(TWO_OVER_PI.get(at + ahead).copied().unwrap_or(0), later)
        };
        (0..3).rev().fold(k.literal(TWO_OVER_PI.get(3 + ahead).copied().unwrap_or(0)), choose)
    };
    let words = [digits(0), digits(1), digits(2), digits(3)];
    let shifted = |at: usize| {
        let below = words[at + 1] >> (k.literal(32u32) - offset);
        ((words[at] << offset) | below).to::<u64>()
    };
    let (high, middle, low) = (shifted(0), shifted(1), shifted(2));
    // The upper 64 of 96 bits of the product; its two highest bits count quarter turns.
    let carried = significand * middle + ((significand * low) >> 32u32);
    let product = ((significand * high) << 32u32) + carried;
    let fraction = (product << 2u32).bits_as::<i64>();
    let quarter = (product >> 62u32).to::<u32>() + fraction.lt(0).to::<u32>();
    let rest = fraction.to::<f64>() * (HALF_PI_HIGH / (2.0f64).powi(64));
    Reduced { quarter, rest }
}
