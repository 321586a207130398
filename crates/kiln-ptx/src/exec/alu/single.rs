//! `f32` arithmetic.
//!
//! Nearest rounding without other modifiers is what the host computes, lane by lane in a loop that vectorises. The
//! rest goes through the host where the rounding is nearest, and through [`exact`] where it is not.

use super::float_format::{F32, Format};
use super::{Alu, Input, Mode, Round, exact, lanes};
use crate::exec::warp_register::{Column, FULL, each};
use kiln_lanes::{LaneLoop, words, words_mut};

/// The NaN arithmetic answers.
const NAN: u64 = F32.nan;

#[inline(always)]
pub(crate) fn float(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

/// The bits of a result; every NaN is the canonical one.
#[inline(always)]
pub(crate) fn canonical(value: f32) -> u64 {
    if value.is_nan() { NAN } else { u64::from(value.to_bits()) }
}

#[inline(always)]
fn canonical_word(value: f32) -> u32 {
    if value.is_nan() { NAN as u32 } else { value.to_bits() }
}

#[inline(always)]
pub(crate) fn operand(bits: u64, mode: Mode) -> u64 {
    if mode.ftz { F32.flush(bits) } else { bits }
}

/// Applies what the modifiers do to a rounded result.
pub(crate) fn finish(bits: u64, mode: Mode) -> u64 {
    finish_in(F32, 0x3f80_0000, bits, mode)
}

/// The same for any format, whose 1.0 is `one`.
pub(crate) fn finish_in(format: Format, one: u64, bits: u64, mode: Mode) -> u64 {
    let mut bits = if mode.ftz { format.flush(bits) } else { bits };
    let (nan, negative) = (format.is_nan(bits), bits & format.sign_bit() != 0);
    if mode.sat {
        if nan || negative {
            bits = 0;
        } else if bits > one {
            bits = one;
        }
    }
    if mode.relu && negative && !nan {
        bits = 0;
    }
    bits
}

/// Lanes from which on a plain operation is computed for all of them.
const MANY: u32 = 4;

/// Ones for the half of a column value that holds an `f32`, at each word of a column.
const LOW_WORDS: [u32; 64] = words_of_low_halves();

const fn words_of_low_halves() -> [u32; 64] {
    let mut ones = [0; 64];
    let mut at = if cfg!(target_endian = "little") { 0 } else { 1 };
    while at < ones.len() {
        ones[at] = u32::MAX;
        at += 2;
    }
    ones
}

/// One `f32` operation: a fast loop for the plain mode, and one that follows every modifier. The fast loop computes with the words of the columns as
/// they lie, the upper halves included, and drops these: to take the lower halves out and put them back costs more.
macro_rules! single {
    ($plain:expr, $exact:expr) => {
        single!($plain, $plain, $exact)
    };
    ($plain:expr, $fused:expr, $exact:expr) => {{
        struct Lanes<'a>(&'a Input<'a>, &'a mut Column);
        impl LaneLoop for Lanes<'_> {
            type Output = ();
            #[inline(always)]
            fn run<const FUSED: bool>(self) {
                let Self(input, out) = self;
                let plain: fn(f32, f32, f32) -> f32 = if FUSED { $fused } else { $plain };
                if input.mask != FULL && input.mask.count_ones() < MANY {
                    each(input.mask, |lane| {
                        let (a, b, c) = (float(input.a[lane]), float(input.b[lane]), float(input.c[lane]));
                        out[lane] = canonical(plain(a, b, c));
                    });
                    return;
                }
                let (a, b, c, out) = (words(input.a), words(input.b), words(input.c), words_mut(out));
                for at in 0..LOW_WORDS.len() {
                    let [a, b, c] = [a[at], b[at], c[at]].map(f32::from_bits);
                    out[at] = canonical_word(plain(a, b, c)) & LOW_WORDS[at];
                }
            }
        }
        fn run(input: &Input<'_>, out: &mut Column) {
            if input.mode.is_plain() {
                return input.set.run(Lanes(input, out));
            }
            let plain: fn(f32, f32, f32) -> f32 = $plain;
            let exact: fn([u64; 3], Round) -> u64 = $exact;
            let mode = *input.mode;
            each(input.mask, |lane| {
                let bits = [input.a[lane], input.b[lane], input.c[lane]].map(|bits| operand(bits, mode));
                let rounded = match mode.round {
                    Round::Nearest => canonical(plain(float(bits[0]), float(bits[1]), float(bits[2]))),
                    round => exact(bits, round),
                };
                out[lane] = finish(rounded, mode);
            });
        }
        run as Alu
    }};
}

/// `a + b`.
pub(crate) fn add() -> Alu {
    single!(|a, b, _| a + b, |[a, b, _], round| exact::add(F32.unpack(a), F32.unpack(b), F32, round))
}

/// `a - b`.
pub(crate) fn subtract() -> Alu {
    single!(|a, b, _| a - b, |[a, b, _], round| {
        exact::add(F32.unpack(a), F32.unpack(b ^ F32.sign_bit()), F32, round)
    })
}

/// `a * b`.
pub(crate) fn multiply() -> Alu {
    single!(|a, b, _| a * b, |[a, b, _], round| exact::multiply(F32.unpack(a), F32.unpack(b), F32, round))
}

/// `a * b + c`, rounded once.
pub(crate) fn fused() -> Alu {
    single!(|a, b, c| fuse(a, b, c), |a, b, c| a.mul_add(b, c), |[a, b, c], round| {
        exact::fused(F32.unpack(a), F32.unpack(b), F32.unpack(c), F32, round)
    })
}

/// `a / b`.
pub(crate) fn divide() -> Alu {
    single!(|a, b, _| a / b, |[a, b, _], round| exact::divide(F32.unpack(a), F32.unpack(b), F32, round))
}

/// `1 / a`.
pub(crate) fn reciprocal() -> Alu {
    single!(|a, _, _| 1.0 / a, |[a, _, _], round| {
        exact::divide(F32.unpack(0x3f80_0000), F32.unpack(a), F32, round)
    })
}

/// The square root of `a`.
pub(crate) fn root() -> Alu {
    single!(|a, _, _| a.sqrt(), |[a, _, _], round| exact::root(F32.unpack(a), F32, round))
}

/// `-a`.
pub(crate) fn negate() -> Alu {
    lanes!(mode, |a, _b, _c| if F32.is_nan(a) { NAN } else { operand(a, mode) ^ F32.sign_bit() })
}

/// `|a|`.
pub(crate) fn absolute() -> Alu {
    lanes!(mode, |a, _b, _c| if F32.is_nan(a) { NAN } else { operand(a, mode) & (F32.sign_bit() - 1) })
}

/// The smaller of `a` and `b`.
pub(crate) fn minimum() -> Alu {
    lanes!(mode, |a, b, _c| extreme(F32, operand(a, mode), operand(b, mode), mode, true))
}

/// The larger of `a` and `b`.
pub(crate) fn maximum() -> Alu {
    lanes!(mode, |a, b, _c| extreme(F32, operand(a, mode), operand(b, mode), mode, false))
}

/// The sign of `a` with the magnitude of `b`.
pub(crate) fn copy_sign() -> Alu {
    lanes!(|a, b| (a & F32.sign_bit()) | (b & (F32.sign_bit() - 1)))
}

/// The smaller or larger of two numbers of any format. NaN loses unless the mode lets it win; -0 is below +0.
#[inline(always)]
pub(crate) fn extreme(format: Format, a: u64, b: u64, mode: Mode, smaller: bool) -> u64 {
    let sign = format.sign_bit();
    let flip = if mode.xorsign { (a ^ b) & sign } else { 0 };
    let (a, b) = if mode.xorsign { (a & !sign, b & !sign) } else { (a, b) };
    match (format.is_nan(a), format.is_nan(b)) {
        (true, true) => return format.nan,
        (true, false) | (false, true) if mode.nan => return format.nan,
        (true, false) => return b | flip,
        (false, true) => return a | flip,
        (false, false) => {}
    }
    // Sign and magnitude order like two's complement once negative numbers are turned around.
    let key = |bits: u64| if bits & sign != 0 { !bits } else { bits | sign } & (sign | (sign - 1));
    let first = (key(a) < key(b)) == smaller || a == b;
    (if first { a } else { b }) | flip
}

/// `a * b + c` rounded once, without the host's fused instruction.
///
/// The product of two singles is exact in a double. The sum is rounded to odd, so that the second rounding to single
/// sees on which side of every boundary the exact sum lies.
#[inline(always)]
pub(crate) fn fuse(a: f32, b: f32, c: f32) -> f32 {
    fuse_to_odd(f64::from(a), f64::from(b), f64::from(c)) as f32
}

/// `a * b + c` rounded to odd, where `a * b` is exact in a double.
#[inline(always)]
pub(crate) fn fuse_to_odd(a: f64, b: f64, c: f64) -> f64 {
    let product = a * b;
    let sum = product + c;
    let back = sum - product;
    let error = (product - (sum - back)) + (c - back);
    let bits = sum.to_bits();
    let outward = (error > 0.0) == (sum > 0.0);
    let odd = if outward { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
    f64::from_bits(if error.abs() > 0.0 && bits & 1 == 0 { odd } else { bits })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fused_without_the_instruction_equals_the_instruction() {
        let mut state = 7u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            f32::from_bits((state >> 32) as u32)
        };
        for _ in 0..500_000 {
            let (a, b) = (next(), next());
            let near = -(a * b) * f32::from_bits(0x3f80_0000 + (next().to_bits() & 3));
            for c in [next(), near] {
                let (ours, host) = (fuse(a, b, c), a.mul_add(b, c));
                assert!(
                    ours.to_bits() == host.to_bits() || (ours.is_nan() && host.is_nan()),
                    "{a:e} {b:e} {c:e}"
                );
            }
        }
    }

    #[test]
    fn extremes_know_zeros_and_nan() {
        let [zero, minus, one, nan] = [0.0f32, -0.0, 1.0, f32::NAN].map(|f| u64::from(f.to_bits()));
        let plain = Mode::default();
        assert_eq!(extreme(F32, zero, minus, plain, true), minus);
        assert_eq!(extreme(F32, minus, zero, plain, false), zero);
        assert_eq!(extreme(F32, nan, one, plain, true), one);
        assert_eq!(extreme(F32, nan, one, Mode { nan: true, ..plain }, true), NAN);
    }
}
