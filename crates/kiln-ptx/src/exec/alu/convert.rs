//! `cvt`: conversions between all number types.
//!
//! One function converts any type into any other; the pairs that compilers emit most have their loops.

use super::exact::integer;
use super::float_format::{
    BF16, E2M1, E2M3, E3M2, E4M3, E5M2, F16, F32, F64, Format, TF32, Value, shift_and_round,
};
use super::half::one;
use super::scale::{brain_of_scale, scale_of_single};
use super::single::{finish_in, float};
use super::{Alu, Mode, Round, lanes};
use crate::ScalarType;

/// A number type as a conversion sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Number {
    U8,
    S8,
    U16,
    S16,
    #[default]
    U32,
    S32,
    U64,
    S64,
    F16,
    Bf16,
    F32,
    F64,
    Tf32,
    E4m3,
    E5m2,
    E3m2,
    E2m3,
    E2m1,
    /// A power of two.
    Ue8m0,
}

impl Number {
    /// The number type of one value of `ty`, packed or not.
    pub(crate) fn of(ty: ScalarType) -> Option<Self> {
        use ScalarType as Type;
        Some(match ty {
            Type::U8 | Type::B8 => Self::U8,
            Type::S8 => Self::S8,
            Type::U16 | Type::B16 => Self::U16,
            Type::S16 => Self::S16,
            Type::U32 | Type::B32 => Self::U32,
            Type::S32 => Self::S32,
            Type::U64 | Type::B64 => Self::U64,
            Type::S64 => Self::S64,
            Type::F16 | Type::F16x2 => Self::F16,
            Type::Bf16 | Type::Bf16x2 => Self::Bf16,
            Type::F32 => Self::F32,
            Type::F64 => Self::F64,
            Type::Tf32 => Self::Tf32,
            Type::E4m3x2 => Self::E4m3,
            Type::E5m2x2 => Self::E5m2,
            Type::E3m2x2 => Self::E3m2,
            Type::E2m3x2 => Self::E2m3,
            Type::E2m1x2 => Self::E2m1,
            Type::Ue8m0x2 => Self::Ue8m0,
            _ => return None,
        })
    }

    /// The format of a float.
    pub(crate) fn format(self) -> Option<Format> {
        Some(match self {
            Self::F16 => F16,
            Self::Bf16 => BF16,
            Self::F32 => F32,
            Self::F64 => F64,
            Self::Tf32 => TF32,
            Self::E4m3 => E4M3,
            Self::E5m2 => E5M2,
            Self::E3m2 => E3M2,
            Self::E2m3 => E2M3,
            Self::E2m1 => E2M1,
            _ => return None,
        })
    }

    /// Bits of an integer, and whether it has a sign.
    fn integer(self) -> Option<(u32, bool)> {
        Some(match self {
            Self::U8 => (8, false),
            Self::S8 => (8, true),
            Self::U16 => (16, false),
            Self::S16 => (16, true),
            Self::U32 => (32, false),
            Self::S32 => (32, true),
            Self::U64 => (64, false),
            Self::S64 => (64, true),
            _ => return None,
        })
    }
}

/// The conversion the mode describes.
pub(crate) fn conversion(mode: Mode) -> Alu {
    let plain = !mode.sat && !mode.ftz && !mode.relu && !mode.integral && !mode.satfinite;
    let nearest = mode.round == Round::Nearest;
    match (mode.from, mode.to) {
        (from, to) if plain && is_cut(from, to) => match to {
            Number::U8 | Number::S8 => lanes!(|a| a & 0xff),
            Number::U16 | Number::S16 => lanes!(|a| a & 0xffff),
            Number::U32 | Number::S32 => lanes!(|a| a & 0xffff_ffff),
            _ => lanes!(|a| a),
        },
        (Number::U32, Number::U64 | Number::S64) if plain => lanes!(|a| a & 0xffff_ffff),
        (Number::S32, Number::U64 | Number::S64) if plain => lanes!(|a| a as i32 as u64),
        (Number::S32, Number::F32) if plain && nearest => lanes!(|a| u64::from((a as i32 as f32).to_bits())),
        (Number::U32, Number::F32) if plain && nearest => lanes!(|a| u64::from((a as u32 as f32).to_bits())),
        (Number::S32, Number::F64) if plain && nearest => lanes!(|a| f64::from(a as i32).to_bits()),
        (Number::F32, Number::F64) if plain => lanes!(|a| widen_single(a)),
        (Number::F64, Number::F32) if plain && nearest => lanes!(|a| narrow_double(a)),
        _ => lanes!(mode, |a, _b, _c| convert(a, mode)),
    }
}

/// Whether a conversion between integers only drops upper bits.
fn is_cut(from: Number, to: Number) -> bool {
    matches!((from.integer(), to.integer()), (Some((from, _)), Some((to, _))) if to <= from)
}

/// A single as a double.
#[inline(always)]
fn widen_single(bits: u64) -> u64 {
    let value = float(bits);
    if value.is_nan() { carry_nan(bits, F32, F64) } else { f64::from(value).to_bits() }
}

/// The single nearest to a double.
#[inline(always)]
fn narrow_double(bits: u64) -> u64 {
    let value = f64::from_bits(bits);
    if value.is_nan() { carry_nan(bits, F64, F32) } else { u64::from((value as f32).to_bits()) }
}

/// A NaN in another format: where a double is involved it keeps its sign and the top of its payload.
fn carry_nan(bits: u64, from: Format, to: Format) -> u64 {
    if from != F64 && to != F64 {
        return to.nan;
    }
    let fraction = bits & ((1 << from.fraction_bits) - 1);
    let payload = match to.fraction_bits.checked_sub(from.fraction_bits) {
        Some(wider) => fraction << wider,
        None => fraction >> (from.fraction_bits - to.fraction_bits),
    };
    let quiet = 1 << (to.fraction_bits - 1);
    to.infinity(bits & from.sign_bit() != 0) | payload | quiet
}

/// Converts one value.
pub(crate) fn convert(bits: u64, mode: Mode) -> u64 {
    match (mode.from.format(), mode.to.format()) {
        (Some(from), Some(to)) => float_to_float(bits, from, to, mode),
        (Some(from), None) => float_to_integer(bits, from, mode),
        (None, Some(to)) => {
            let value = read_integer(bits, mode.from);
            let exact = integer(value.unsigned_abs() as u64, value < 0);
            store(finish(to, to.pack(exact, mode.round), mode), to)
        }
        (None, None) => integer_to_integer(read_integer(bits, mode.from), mode.to, mode.sat),
    }
}

fn read_integer(bits: u64, from: Number) -> i128 {
    match from.integer() {
        Some((width, false)) => i128::from(bits & (u64::MAX >> (64 - width))),
        Some((width, true)) => i128::from((bits << (64 - width)) as i64 >> (64 - width)),
        None => 0,
    }
}

fn range(to: Number) -> (i128, i128) {
    match to.integer() {
        Some((width, false)) => (0, (1 << width) - 1),
        Some((width, true)) => (-(1 << (width - 1)), (1 << (width - 1)) - 1),
        None => (0, 0),
    }
}

/// The low bits of an integer in its type; they are widened to the register when they are written.
fn integer_to_integer(value: i128, to: Number, saturate: bool) -> u64 {
    let (low, high) = range(to);
    let value = if saturate { value.clamp(low, high) } else { value };
    let width = to.integer().map_or(64, |(width, _)| width);
    value as u64 & (u64::MAX >> (64 - width))
}

fn float_to_integer(bits: u64, from: Format, mode: Mode) -> u64 {
    let to = mode.to;
    let bits = if mode.ftz { from.flush(bits) } else { bits };
    let (low, high) = range(to);
    let value =
        match from.unpack(bits) {
            Value::Nan => return nan_to_integer(from, to),
            Value::Zero { .. } => 0,
            Value::Infinite { negative: true } => low,
            Value::Infinite { negative: false } => high,
            Value::Finite(exact) if exact.exponent + exact.significand.ilog2() as i32 > 64 => {
                if exact.negative { low } else { high }
            }
            Value::Finite(exact) if exact.exponent >= 0 => {
                let magnitude = (exact.significand << exact.exponent) as i128;
                if exact.negative { -magnitude } else { magnitude }
            }
            Value::Finite(exact) => {
                let whole = shift_and_round(exact.significand, -exact.exponent, exact.negative, mode.round);
                if exact.negative { -i128::from(whole) } else { i128::from(whole) }
            }
        };
    integer_to_integer(value.clamp(low, high), to, false)
}

/// What hardware makes of NaN: zero, but the top bit where a double or a 64-bit integer is involved.
fn nan_to_integer(from: Format, to: Number) -> u64 {
    let (width, _) = to.integer().unwrap_or((64, false));
    if from == F64 || width == 64 { 1 << (width - 1) } else { 0 }
}

fn float_to_float(bits: u64, from: Format, to: Format, mode: Mode) -> u64 {
    let bits = if from == TF32 { bits >> 13 } else { bits };
    let bits = bits & (u64::MAX >> (64 - from.bits()));
    let bits = if mode.ftz && from == F32 { from.flush(bits) } else { bits };
    let mut value = from.unpack(bits);
    if value == Value::Nan {
        match (from, to, mode.round) {
            // Both only move bits.
            (BF16, F32, _) => return bits << 16,
            (F32, TF32, Round::Away) => return bits & !0x1fff,
            // Flushing is a separate step, which forgets the payload.
            (F32, F64, _) if mode.ftz => return carry_nan(F32.nan, from, to),
            _ if !mode.sat && !mode.relu => return store(carry_nan(bits, from, to), to),
            _ => {}
        }
    }
    if mode.integral {
        value = whole(value, mode.round);
    }
    let mut packed = to.pack(value, mode.round);
    if mode.satfinite {
        packed = clamp_finite(to, value, packed);
    }
    store(finish(to, packed, mode), to)
}

/// Rounds to a whole number that stays a float.
fn whole(value: Value, round: Round) -> Value {
    let Value::Finite(exact) = value else { return value };
    if exact.exponent >= 0 {
        return value;
    }
    match shift_and_round(exact.significand, -exact.exponent, exact.negative, round) {
        0 => Value::Zero { negative: exact.negative },
        magnitude => integer(magnitude, exact.negative),
    }
}

fn clamp_finite(to: Format, value: Value, packed: u64) -> u64 {
    match value {
        Value::Nan => to.nan,
        Value::Infinite { negative } => to.largest(negative),
        Value::Finite(exact) if packed == to.infinity(exact.negative) => to.largest(exact.negative),
        _ => packed,
    }
}

fn finish(to: Format, bits: u64, mode: Mode) -> u64 {
    let unit = match to {
        F64 => 1.0f64.to_bits(),
        F32 => 0x3f80_0000,
        F16 | BF16 => one(to),
        _ => u64::MAX,
    };
    let mode = Mode { ftz: mode.ftz && to == F32, ..mode };
    finish_in(to, unit, bits, mode)
}

/// Moves the bits of a `tf32` to where its register holds them.
fn store(bits: u64, to: Format) -> u64 {
    if to == TF32 { bits << 13 } else { bits }
}

/// Two values converted and packed: `a` above `b`.
pub(crate) fn pack_two(mode: Mode) -> Option<Alu> {
    match mode.to {
        Number::F16 | Number::Bf16 => {
            Some(lanes!(mode, |a, b, _c| convert(a, mode) << 16 | convert(b, mode)))
        }
        Number::E4m3 | Number::E5m2 | Number::E3m2 | Number::E2m3 => {
            Some(lanes!(mode, |a, b, _c| convert(a, mode) << 8 | convert(b, mode)))
        }
        Number::E2m1 => Some(lanes!(mode, |a, b, _c| convert(a, mode) << 4 | convert(b, mode))),
        Number::Ue8m0 => {
            Some(lanes!(mode, |a, b, _c| scale_of_single(a, mode) << 8 | scale_of_single(b, mode)))
        }
        _ => None,
    }
}

/// Both parts of a packed pair converted into a packed pair of other width.
pub(crate) fn convert_pair(mode: Mode) -> Option<Alu> {
    use Number::{Bf16, E2m1, E2m3, E3m2, E4m3, E5m2, F16, Ue8m0};
    match (mode.from, mode.to) {
        (E4m3 | E5m2, F16 | Bf16) | (E3m2 | E2m3, F16) => {
            Some(lanes!(mode, |a, _b, _c| convert(a >> 8 & 0xff, mode) << 16 | convert(a & 0xff, mode)))
        }
        (F16 | Bf16, E4m3 | E5m2) => Some(lanes!(mode, |a, _b, _c| {
            convert(a >> 16 & 0xffff, mode) << 8 | convert(a & 0xffff, mode)
        })),
        (E2m1, F16) => {
            Some(lanes!(mode, |a, _b, _c| convert(a >> 4 & 0xf, mode) << 16 | convert(a & 0xf, mode)))
        }
        (F16, E2m1) => Some(lanes!(mode, |a, _b, _c| {
            convert(a >> 16 & 0xffff, mode) << 4 | convert(a & 0xffff, mode)
        })),
        // The upper half of a single is a `bf16`.
        (Bf16, Ue8m0) => Some(lanes!(mode, |a, _b, _c| {
            scale_of_single(a & 0xffff_0000, mode) << 8 | scale_of_single(a << 16 & 0xffff_0000, mode)
        })),
        (Ue8m0, Bf16) => Some(lanes!(|a| brain_of_scale(a >> 8 & 0xff) << 16 | brain_of_scale(a & 0xff))),
        _ => None,
    }
}

/// `cvt.pack.sat`: `a` and `b` clamped and packed above the low part of `c`.
pub(crate) fn pack_saturated(to: ScalarType) -> Option<Alu> {
    macro_rules! pack {
        ($to:expr, $width:expr) => {
            lanes!(|a, b, c| {
                let clamp = |x: u64| integer_to_integer(i128::from(x as i32), $to, true);
                let pair = clamp(a) << $width | clamp(b);
                (if $width == 16 { pair } else { c << (2 * $width) | pair }) & 0xffff_ffff
            })
        };
    }
    Some(match to {
        ScalarType::U16 => pack!(Number::U16, 16),
        ScalarType::S16 => pack!(Number::S16, 16),
        ScalarType::U8 => pack!(Number::U8, 8),
        ScalarType::S8 => pack!(Number::S8, 8),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(from: ScalarType, to: ScalarType, round: Round) -> Mode {
        let (from, to) = (Number::of(from).unwrap(), Number::of(to).unwrap());
        Mode { from, to, round, ..Mode::default() }
    }

    #[test]
    fn floats_become_integers_by_every_rounding() {
        let bits = |x: f32| u64::from(x.to_bits());
        let to =
            |x: f32, round| convert(bits(x), mode(ScalarType::F32, ScalarType::S32, round)) as u32 as i32;
        for (x, nearest, zero, down, up) in [
            (2.5f32, 2, 2, 2, 3),
            (-2.5, -2, -2, -3, -2),
            (3.5, 4, 3, 3, 4),
            (1e20, i32::MAX, i32::MAX, i32::MAX, i32::MAX),
        ] {
            assert_eq!(to(x, Round::Nearest), nearest);
            assert_eq!(to(x, Round::Zero), zero);
            assert_eq!(to(x, Round::Down), down);
            assert_eq!(to(x, Round::Up), up);
        }
        assert_eq!(to(f32::NAN, Round::Zero), 0);
        assert_eq!(convert(bits(-1.0), mode(ScalarType::F32, ScalarType::U8, Round::Zero)), 0);
        assert_eq!(convert(bits(300.0), mode(ScalarType::F32, ScalarType::U8, Round::Zero)), 255);
    }

    #[test]
    fn integers_become_floats_as_the_host_rounds() {
        let mut state = 11u64;
        for _ in 0..100_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let x = state >> (state % 64);
            let single = convert(x, mode(ScalarType::U64, ScalarType::F32, Round::Nearest));
            assert_eq!(single, u64::from((x as f32).to_bits()));
            let double = convert(x, mode(ScalarType::S64, ScalarType::F64, Round::Nearest));
            assert_eq!(double, (x as i64 as f64).to_bits());
        }
    }

    #[test]
    fn saturation_clamps_integers() {
        let saturating = Mode { sat: true, ..mode(ScalarType::S32, ScalarType::U8, Round::Nearest) };
        assert_eq!(convert(0xffff_fff0, saturating), 0);
        assert_eq!(convert(1000, saturating), 255);
        assert_eq!(convert(77, saturating), 77);
    }
}
