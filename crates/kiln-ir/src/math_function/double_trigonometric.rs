//! Sine and cosine of doubles.
//!
//! The angle is reduced to a quarter turn and a rest between -pi/4 and pi/4, kept as the sum of two doubles, so that the
//! result is off by little more than its own rounding. Angles that are too large for a product with pi/2 are reduced
//! with the 192 digits of 2/pi that their exponent reaches into: enough for the double that comes closest to a whole
//! number of quarter turns, which is off by 2^-61 of one.

use super::polynomial64;
use crate::builder::{KernelBuilder, Val};

/// pi/2 as the sum of three doubles.
const HALF_PI: [f64; 3] = [
    std::f64::consts::FRAC_PI_2,
    f64::from_bits(0x3c91_a626_3314_5c07),
    f64::from_bits(0xb91f_1976_b7ed_8fbc),
];
/// Angles up to here are reduced with those.
const SIMPLE_LIMIT: f64 = (1u32 << 30) as f64;
/// Below, the sine of an angle is the angle.
const TINY: f64 = 1.0 / (1u64 << 27) as f64;

/// The digits of 2/pi, 64 bits each, with a word of zeros before the point.
const TWO_OVER_PI: [u64; 20] = [
    0,
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c,
    0xfe1d_eb1c_b129_a73e,
    0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41,
    0x3991_d639_8353_39f4,
    0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f,
    0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d,
    0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_1f8d_5d08,
    0x5603_3046_fc7b_6bab,
];

/// A quarter turn and what is left, `rest + low`.
struct Reduced<'k> {
    quarter: Val<'k, u32>,
    rest: Val<'k, f64>,
    low: Val<'k, f64>,
}

pub(super) fn sin(x: Val<'_, f64>) -> Val<'_, f64> {
    let result = finish(&reduce(x), 0);
    // Also zero keeps its sign.
    let result = x.abs().lt(TINY).select::<f64>(x, result);
    x.abs().lt(f64::INFINITY).select::<f64>(result, f64::NAN)
}

pub(super) fn cos(x: Val<'_, f64>) -> Val<'_, f64> {
    let result = finish(&reduce(x), 1);
    x.abs().lt(f64::INFINITY).select::<f64>(result, f64::NAN)
}

/// The sine of a reduced angle and some quarter turns more.
fn finish<'k>(reduced: &Reduced<'k>, more: u32) -> Val<'k, f64> {
    let Reduced { quarter, rest, low } = reduced;
    let (rest, low) = (*rest, *low);
    let square = rest * rest;
    // sin(r + l) = r + (r^3 P(r^2) + l (1 - r^2/2)), and the bracket is small.
    let tail = (square * -0.5).mul_add(low, low);
    let sine = rest + (rest * square).mul_add(polynomial64(square, &series::<8>(3)), tail);
    // cos(r + l) = (1 - r^2/2) + (r^4 Q(r^2) - r l); what the difference and the square lose is kept.
    let half = square * 0.5;
    let near = 1.0 - half;
    let lost = (1.0 - near) - half;
    let square_lost = rest.mul_add(rest, -square) * 0.5;
    let tail = lost - rest.mul_add(low, square_lost);
    let cosine = near + (square * square).mul_add(polynomial64(square, &series::<8>(4)), tail);
    let quarter = *quarter + more;
    let value = (quarter & 1u32).eq(0).select::<f64>(sine, cosine);
    (quarter & 2u32).eq(0).select::<f64>(value, -value)
}

/// `1/n!` for every second n from the given one on, with the signs of the sine and the cosine, the highest first.
fn series<const TERMS: usize>(first: u32) -> [f64; TERMS] {
    let mut coefficients = [0.0; TERMS];
    for (at, slot) in coefficients.iter_mut().rev().enumerate() {
        let power = first + 2 * at as u32;
        let factorial: f64 = (1..=power).map(f64::from).product();
        *slot = if power / 2 % 2 == 1 { -1.0 / factorial } else { 1.0 / factorial };
    }
    coefficients
}

fn reduce(x: Val<'_, f64>) -> Reduced<'_> {
    let k = x.kernel;
    let turns = (x * std::f64::consts::FRAC_2_PI).round();
    // Exact: both are multiples of 2^-53, and what is left is below one.
    let rest = (-turns).mul_add(HALF_PI[0], x);
    let product = turns * HALF_PI[1];
    let product_low = turns.mul_add(HALF_PI[1], -product);
    let (rest, lost) = difference(rest, product);
    let low = lost - turns.mul_add(HALF_PI[2], product_low);
    let (rest, low) = normalized(rest, low);
    let (rest, low) = (k.var(rest), k.var(low));
    let quarter = k.var(turns.to::<i64>().to::<u32>());
    k.if_(x.abs().gt(SIMPLE_LIMIT), || {
        let large = reduce_large(k, x.abs());
        let negative = x.lt(0.0);
        quarter.set(negative.select::<u32>(-large.quarter, large.quarter));
        rest.set(negative.select::<f64>(-large.rest, large.rest));
        low.set(negative.select::<f64>(-large.low, large.low));
    });
    Reduced { quarter: quarter.get(), rest: rest.get(), low: low.get() }
}

/// `a - b` and what its rounding lost, whichever is larger.
fn difference<'k>(a: Val<'k, f64>, b: Val<'k, f64>) -> (Val<'k, f64>, Val<'k, f64>) {
    let result = a - b;
    let back = result - a;
    (result, (a - (result - back)) - (b + back))
}

/// The same sum with as much as possible in the first.
fn normalized<'k>(high: Val<'k, f64>, low: Val<'k, f64>) -> (Val<'k, f64>, Val<'k, f64>) {
    let sum = high + low;
    (sum, (high - sum) + low)
}

/// `x * 2/pi` modulo 4 for a large x, which is `m * 2^e` with a whole m of 53 bits: the digits of 2/pi that make
/// multiples of 4 with it are skipped.
fn reduce_large<'k>(k: &'k KernelBuilder, x: Val<'k, f64>) -> Reduced<'k> {
    let bits = x.bits_as::<u64>();
    let significand = (bits & 0x000f_ffff_ffff_ffffu64) | 0x0010_0000_0000_0000u64;
    // The first digit that matters has the weight 2^-(e-1) and is number e-2 from the point, which is a word further on.
    let first = (bits >> 52u32).to::<u32>() - (1023 + 52 + 2 - 64);
    let [high, middle, low] = digits(k, first);
    // The upper 128 of 192 bits of the product; its two highest bits count quarter turns.
    let one = significand * middle;
    let lower = one + significand.mul_hi(low);
    let carry = lower.lt(one).to::<u64>();
    let upper = significand * high + significand.mul_hi(middle) + carry;
    let fraction = [(upper << 2u32) | (lower >> 62u32), lower << 2u32];
    let negative = fraction[0].bits_as::<i64>().lt(0);
    let quarter = (upper >> 62u32).to::<u32>() + negative.to::<u32>();
    // Its size: with the sign changed the lower half carries into the upper one when it is zero.
    let flipped = !fraction[0] + fraction[1].eq(0).to::<u64>();
    let upper = negative.select::<u64>(flipped, fraction[0]);
    let lower = negative.select::<u64>(-fraction[1], fraction[1]);
    let (size, size_low) = as_doubles(upper, lower);
    // Times pi/2.
    let rest = size * HALF_PI[0];
    let low = size.mul_add(HALF_PI[0], -rest) + size.mul_add(HALF_PI[1], size_low * HALF_PI[0]);
    let (rest, low) = normalized(rest, low);
    Reduced { quarter, rest: negative.select::<f64>(-rest, rest), low: negative.select::<f64>(-low, low) }
}

/// The 192 digits of 2/pi from one on: the words around are found bit by bit of their number, and shifted.
fn digits<'k>(k: &'k KernelBuilder, first: Val<'k, u32>) -> [Val<'k, u64>; 3] {
    let (word, offset) = (first >> 6u32, first & 63u32);
    let mut words: Vec<Val<'k, u64>> = TWO_OVER_PI.iter().map(|word| k.literal(*word)).collect();
    for step in [16, 8, 4, 2, 1] {
        let skips = (word & step).ne(0);
        let zero = k.literal(0u64);
        let from = |at: usize| words.get(at).copied().unwrap_or(zero);
        // Four words are wanted at the end, and later steps skip fewer than this one.
        let wanted = 4 + step as usize - 1;
        words = (0..wanted).map(|at| skips.select::<u64>(from(at + step as usize), from(at))).collect();
    }
    let word = |at: usize| words.get(at).copied().unwrap_or(k.literal(0u64));
    [0, 1, 2].map(|at| (word(at) << offset) | (word(at + 1) >> (k.literal(64u32) - offset)))
}

/// A fraction of 128 bits as the sum of two doubles.
fn as_doubles<'k>(upper: Val<'k, u64>, lower: Val<'k, u64>) -> (Val<'k, f64>, Val<'k, f64>) {
    let zeros = upper.leading_zeros();
    let upper = (upper << zeros) | (lower >> (upper.kernel.literal(64u32) - zeros));
    let lower = lower << zeros;
    let power = |exponent: Val<'k, u32>| (exponent.to::<u64>() << 52u32).bits_as::<f64>();
    // The first 53 bits, and the 64 behind them.
    let high = (upper >> 11u32).to::<f64>() * power(1023 - 53 - zeros);
    let low = ((upper << 53u32) | (lower >> 11u32)).to::<f64>() * power(1023 - 117 - zeros);
    (high, low)
}
