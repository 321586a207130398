//! The two 16-bit float formats, by way of `f64`, which holds all their numbers.

/// A 16-bit float format.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Half {
    fraction_bits: u32,
    /// The exponent of the smallest normal number.
    least_exponent: i32,
    /// The bits of infinity.
    infinity: u64,
}

/// IEEE half precision.
pub(crate) const F16: Half = Half { fraction_bits: 10, least_exponent: -14, infinity: 0x7c00 };
/// The upper half of a single.
pub(crate) const BF16: Half = Half { fraction_bits: 7, least_exponent: -126, infinity: 0x7f80 };

const SIGN: u64 = 0x8000;

impl Half {
    /// The value of some bits.
    pub(crate) fn widen(self, bits: u64) -> f64 {
        let sign = if bits & SIGN != 0 { -1.0 } else { 1.0 };
        let magnitude = bits & !SIGN & 0xffff;
        if magnitude > self.infinity {
            return f64::NAN;
        }
        if magnitude == self.infinity {
            return sign * f64::INFINITY;
        }
        let fraction = magnitude & ((1 << self.fraction_bits) - 1);
        let exponent = (magnitude >> self.fraction_bits) as i32;
        let unit = self.least_exponent - self.fraction_bits as i32;
        let (significand, shift) = match exponent {
            0 => (fraction, 0),
            _ => (fraction | 1 << self.fraction_bits, exponent - 1),
        };
        sign * significand as f64 * power_of_two(unit + shift)
    }

    /// The bits of the nearest number, ties to even.
    pub(crate) fn narrow(self, value: f64) -> u64 {
        let sign = if value.is_sign_negative() { SIGN } else { 0 };
        let magnitude = value.abs();
        if magnitude.is_nan() {
            return sign | self.infinity | 1 << (self.fraction_bits - 1);
        }
        // One unit in the last place at this magnitude; below the normal numbers it stays the same.
        let exponent = ((magnitude.to_bits() >> 52) as i32 - 1023).max(self.least_exponent);
        let unit = exponent - self.fraction_bits as i32;
        if unit > 512 {
            return sign | self.infinity;
        }
        let units = (magnitude * power_of_two(-unit)).round_ties_even() as u64;
        // A significand that grew by a bit carries into the exponent, the last time into infinity.
        let base = ((exponent - self.least_exponent) as u64) << self.fraction_bits;
        sign | (base + units).min(self.infinity)
    }

    /// `a * b + c` rounded once.
    pub(crate) fn fused(self, a: f64, b: f64, c: f64) -> u64 {
        // The product is exact. The sum is rounded to odd, so that the second rounding sees on which side of a tie
        // the exact sum lies.
        let product = a * b;
        let sum = product + c;
        let back = sum - product;
        let error = (product - (sum - back)) + (c - back);
        let even = sum.to_bits() & 1 == 0;
        let odd = match (error > 0.0, error < 0.0) {
            (true, _) if even => {
                if sum > 0.0 {
                    sum.to_bits() + 1
                } else {
                    sum.to_bits() - 1
                }
            }
            (_, true) if even => {
                if sum > 0.0 {
                    sum.to_bits() - 1
                } else {
                    sum.to_bits() + 1
                }
            }
            _ => sum.to_bits(),
        };
        self.narrow(f64::from_bits(odd))
    }
}

/// 2 to a power from -1022 to 1023.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_back() {
        for half in [F16, BF16] {
            for bits in 0..=0xffffu64 {
                let wide = half.widen(bits);
                if wide.is_nan() {
                    assert!(half.widen(half.narrow(wide)).is_nan());
                } else {
                    assert_eq!(half.narrow(wide), bits);
                }
            }
        }
    }

    #[test]
    fn the_nearest_is_found_by_search_too() {
        let mut state = 9u64;
        for _ in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let bits = state >> 48;
            for half in [F16, BF16] {
                let (low, high) = (half.widen(bits & 0x7fff), half.widen((bits & 0x7fff) + 1));
                if !low.is_finite() || !high.is_finite() {
                    continue;
                }
                let middle = low + (high - low) / 2.0;
                let even = if bits & 1 == 0 { bits & 0x7fff } else { (bits & 0x7fff) + 1 };
                assert_eq!(half.narrow(middle), even);
                let below = f64::from_bits(middle.to_bits() - 1);
                let above = f64::from_bits(middle.to_bits() + 1);
                assert_eq!((half.narrow(below), half.narrow(above)), (bits & 0x7fff, (bits & 0x7fff) + 1));
            }
        }
    }

    #[test]
    fn too_large_is_infinite() {
        assert_eq!(F16.narrow(65519.9), 0x7bff);
        assert_eq!(F16.narrow(65520.0), 0x7c00);
        assert_eq!(BF16.narrow(f64::MAX), 0x7f80);
        assert_eq!(BF16.narrow(-f64::INFINITY), 0xff80);
    }
}
