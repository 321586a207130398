//! Binary floating-point formats: taking a value apart and rounding an exact one into its bits.
//!
//! One rounding step serves every format and every rounding of PTX. It is exact by construction: it sees the whole
//! significand, or one whose lowest bit stands for everything that was cut off below it.

use super::Round;

/// A floating-point format of at most 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    pub(crate) exponent_bits: u32,
    pub(crate) fraction_bits: u32,
    /// The bits of the NaN that arithmetic answers.
    pub(crate) nan: u64,
    /// What the largest exponent stands for.
    pub(crate) top: TopExponent,
}

/// What the largest exponent of a format stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TopExponent {
    /// Infinity and NaN, as IEEE 754 has it.
    Special,
    /// Numbers, and NaN where all bits are ones.
    NumbersAndNan,
    /// Numbers alone: the format has neither infinity nor NaN.
    Numbers,
}

pub(crate) const F64: Format =
    Format { exponent_bits: 11, fraction_bits: 52, nan: 0xfff8_0000_0000_0000, top: TopExponent::Special };
pub(crate) const F32: Format =
    Format { exponent_bits: 8, fraction_bits: 23, nan: 0x7fff_ffff, top: TopExponent::Special };
pub(crate) const F16: Format =
    Format { exponent_bits: 5, fraction_bits: 10, nan: 0x7fff, top: TopExponent::Special };
pub(crate) const BF16: Format =
    Format { exponent_bits: 8, fraction_bits: 7, nan: 0x7fff, top: TopExponent::Special };
/// The ten-bit fraction of `tf32`, without the thirteen zero bits below it.
pub(crate) const TF32: Format =
    Format { exponent_bits: 8, fraction_bits: 10, nan: 0x3_ffff, top: TopExponent::Special };
pub(crate) const E5M2: Format =
    Format { exponent_bits: 5, fraction_bits: 2, nan: 0x7f, top: TopExponent::Special };
pub(crate) const E4M3: Format =
    Format { exponent_bits: 4, fraction_bits: 3, nan: 0x7f, top: TopExponent::NumbersAndNan };
/// Formats without NaN: what is none becomes the largest number.
pub(crate) const E3M2: Format =
    Format { exponent_bits: 3, fraction_bits: 2, nan: 0x1f, top: TopExponent::Numbers };
pub(crate) const E2M3: Format =
    Format { exponent_bits: 2, fraction_bits: 3, nan: 0x1f, top: TopExponent::Numbers };
pub(crate) const E2M1: Format =
    Format { exponent_bits: 2, fraction_bits: 1, nan: 0x7, top: TopExponent::Numbers };

/// A value taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Nan,
    Infinite { negative: bool },
    Zero { negative: bool },
    Finite(Exact),
}

/// `significand * 2^exponent`, with a significand other than zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exact {
    pub(crate) negative: bool,
    pub(crate) exponent: i32,
    pub(crate) significand: u128,
}

impl Format {
    pub(crate) fn bits(self) -> u32 {
        1 + self.exponent_bits + self.fraction_bits
    }

    fn bias(self) -> i32 {
        (1 << (self.exponent_bits - 1)) - 1
    }

    fn max_biased(self) -> i32 {
        (1 << self.exponent_bits) - 1
    }

    pub(crate) fn sign_bit(self) -> u64 {
        1 << (self.exponent_bits + self.fraction_bits)
    }

    pub(crate) fn zero(self, negative: bool) -> u64 {
        if negative { self.sign_bit() } else { 0 }
    }

    /// Infinity; in a format that has none NaN, or the largest number if it has no NaN either.
    pub(crate) fn infinity(self, negative: bool) -> u64 {
        let magnitude = match self.top {
            TopExponent::Special => (self.max_biased() as u64) << self.fraction_bits,
            TopExponent::NumbersAndNan | TopExponent::Numbers => self.nan,
        };
        self.zero(negative) | magnitude
    }

    /// The largest number.
    pub(crate) fn largest(self, negative: bool) -> u64 {
        let magnitude = match self.top {
            TopExponent::Special => self.infinity(false) - 1,
            TopExponent::NumbersAndNan => self.nan - 1,
            TopExponent::Numbers => self.nan,
        };
        self.zero(negative) | magnitude
    }

    /// Whether the magnitude is above zero and below the smallest normal number.
    pub(crate) fn is_subnormal(self, bits: u64) -> bool {
        let magnitude = bits & (self.sign_bit() - 1);
        magnitude != 0 && magnitude >> self.fraction_bits == 0
    }

    pub(crate) fn is_nan(self, bits: u64) -> bool {
        let magnitude = bits & (self.sign_bit() - 1);
        match self.top {
            TopExponent::Special => magnitude > self.infinity(false),
            TopExponent::NumbersAndNan => magnitude == self.nan,
            TopExponent::Numbers => false,
        }
    }

    /// Zero of the same sign for a subnormal, else the bits as they are.
    pub(crate) fn flush(self, bits: u64) -> u64 {
        if self.is_subnormal(bits) { bits & self.sign_bit() } else { bits }
    }

    pub(crate) fn unpack(self, bits: u64) -> Value {
        let negative = bits & self.sign_bit() != 0;
        let fraction = bits & ((1 << self.fraction_bits) - 1);
        let biased = (bits >> self.fraction_bits) as i32 & self.max_biased();
        if self.is_nan(bits) {
            return Value::Nan;
        }
        if biased == self.max_biased() && self.top == TopExponent::Special {
            return Value::Infinite { negative };
        }
        if biased == 0 && fraction == 0 {
            return Value::Zero { negative };
        }
        let hidden = u64::from(biased != 0) << self.fraction_bits;
        let exponent = biased.max(1) - self.bias() - self.fraction_bits as i32;
        Value::Finite(Exact { negative, exponent, significand: u128::from(fraction | hidden) })
    }

    /// The bits of a value in this format.
    pub(crate) fn pack(self, value: Value, round: Round) -> u64 {
        match value {
            Value::Nan => self.nan,
            Value::Infinite { negative } => self.infinity(negative),
            Value::Zero { negative } => self.zero(negative),
            Value::Finite(exact) => self.round(exact, round),
        }
    }

    /// Rounds an exact value.
    pub(crate) fn round(self, exact: Exact, round: Round) -> u64 {
        let Exact { negative, exponent, significand } = exact;
        if significand == 0 {
            return self.zero(negative);
        }
        let top = significand.ilog2() as i32;
        let lowest = 1 - self.bias();
        let mut unit = (exponent + top).max(lowest) - self.fraction_bits as i32;
        let mut kept = shift_and_round(significand, unit - exponent, negative, round);
        if kept >> (self.fraction_bits + 1) != 0 {
            kept >>= 1;
            unit += 1;
        }
        if kept >> self.fraction_bits == 0 {
            return self.zero(negative) | kept;
        }
        let biased = unit + self.fraction_bits as i32 + self.bias();
        let magnitude = ((biased as u64) << self.fraction_bits) + (kept - (1 << self.fraction_bits));
        let largest = self.largest(false);
        if biased > self.max_biased() || magnitude > largest {
            let inward = match round {
                Round::Nearest | Round::Away => false,
                Round::Zero => true,
                Round::Down => !negative,
                Round::Up => negative,
            };
            return if inward { self.largest(negative) } else { self.infinity(negative) };
        }
        self.zero(negative) | magnitude
    }
}

/// `significand / 2^shift`, rounded to an integer.
pub(crate) fn shift_and_round(significand: u128, shift: i32, negative: bool, round: Round) -> u64 {
    if shift <= 0 {
        return (significand << (-shift).min(127)) as u64;
    }
    let (kept, half, below) = if shift > 128 {
        (0, false, true)
    } else {
        let kept = if shift == 128 { 0 } else { significand >> shift };
        let half = significand >> (shift - 1) & 1 != 0;
        (kept as u64, half, significand & ((1u128 << (shift - 1)) - 1) != 0)
    };
    let up = match round {
        Round::Nearest => half && (below || kept & 1 != 0),
        Round::Away => half,
        Round::Zero => false,
        Round::Down => negative && (half || below),
        Round::Up => !negative && (half || below),
    };
    kept + u64::from(up)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_survives_the_way_through_a_double() {
        for bits in 0..=u64::from(u16::MAX) {
            let value = F16.unpack(bits);
            let wide = F64.pack(value, Round::Nearest);
            let back = F16.pack(F64.unpack(wide), Round::Nearest);
            let expected = if value == Value::Nan { F16.nan } else { bits };
            assert_eq!(back, expected, "{bits:#06x}");
        }
    }

    #[test]
    fn singles_round_as_the_host_does() {
        let mut state = 1u64;
        for _ in 0..200_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let wide = f64::from_bits(state ^ (state >> 17));
            let narrow = (wide as f32).to_bits();
            if !wide.is_nan() {
                assert_eq!(
                    F32.pack(F64.unpack(wide.to_bits()), Round::Nearest),
                    u64::from(narrow),
                    "{wide:e}"
                );
            }
        }
    }

    #[test]
    fn directed_rounding_encloses_the_value() {
        let third = F64.unpack((1.0f64 / 3.0).to_bits());
        let down = f32::from_bits(F32.pack(third, Round::Down) as u32);
        let up = f32::from_bits(F32.pack(third, Round::Up) as u32);
        assert_eq!(up.to_bits(), down.to_bits() + 1);
        assert!(f64::from(down) < 1.0 / 3.0 && f64::from(up) > 1.0 / 3.0);
    }

    #[test]
    fn overflow_follows_the_rounding() {
        let huge = F64.unpack(1e300f64.to_bits());
        assert_eq!(F32.pack(huge, Round::Nearest), u64::from(f32::INFINITY.to_bits()));
        assert_eq!(F32.pack(huge, Round::Zero), u64::from(f32::MAX.to_bits()));
        assert_eq!(F32.pack(huge, Round::Up), u64::from(f32::INFINITY.to_bits()));
        assert_eq!(E4M3.pack(F64.unpack(448.0f64.to_bits()), Round::Nearest), 0x7e);
    }
}
