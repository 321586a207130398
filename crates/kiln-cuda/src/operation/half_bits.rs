//! The bits of a 16-bit floating-point number.

/// Bits of the mantissa that an `f64` has and an `f16` has not.
const DROPPED: u32 = 42;

/// The `f16` nearest to a number, to even in the middle; infinity where it is too large, and a NaN for a NaN.
///
/// Written here because it is the one conversion this crate needs: a crate for it brings five packages into every build.
pub(super) fn f16_bits(value: f64) -> u16 {
    let bits = value.to_bits();
    let sign = ((bits >> 48) & 0x8000) as u16;
    let magnitude = value.abs();
    if value.is_nan() {
        return sign | 0x7e00;
    }
    // The middle between the largest f16 (65504) and the next power of two is rounded up, to infinity.
    if magnitude >= 65520.0 {
        return sign | 0x7c00;
    }
    // Below the smallest normal number steps are all 2^-24 wide: the sum with 2^28 rounds to them, to even.
    if magnitude < 2.0_f64.powi(-14) {
        let shift = 2.0_f64.powi(28);
        return sign | ((magnitude + shift).to_bits() - shift.to_bits()) as u16;
    }
    let bits = magnitude.to_bits();
    let odd = (bits >> DROPPED) & 1;
    let rounded = bits + ((1 << (DROPPED - 1)) - 1) + odd;
    // Both exponents are biased, by 1023 and by 15. A carry out of the mantissa goes on into the exponent, as it must.
    sign | ((rounded >> DROPPED) - (1008 << 10)) as u16
}

#[cfg(test)]
mod tests {
    use super::f16_bits;

    /// What the bits of a positive, finite `f16` mean; exact, since each is an `f64` too. The bits of infinity mean the next power of two.
    fn value_of(bits: u16) -> f64 {
        let mantissa = f64::from(bits & 0x3ff);
        match bits >> 10 {
            0 => mantissa * 2.0_f64.powi(-24),
            exponent => (1024.0 + mantissa) * 2.0_f64.powi(i32::from(exponent) - 25),
        }
    }

    #[test]
    fn numbers_are_rounded_to_the_nearest_f16_and_to_even_in_the_middle() {
        for bits in 0..0x7c00_u16 {
            let (low, high) = (value_of(bits), value_of(bits + 1));
            let middle = f64::midpoint(low, high);
            let even = bits + (bits & 1);
            for (value, expected) in [
                (low, bits),
                (low.next_up(), bits),
                (middle.next_down(), bits),
                (middle, even),
                (middle.next_up(), bits + 1),
                (high, bits + 1),
            ] {
                assert_eq!(f16_bits(value), expected, "{value:e}");
                assert_eq!(f16_bits(-value), expected | 0x8000, "-{value:e}");
            }
        }
    }

    #[test]
    fn large_and_special_numbers_are_infinities_and_a_nan() {
        for value in [65520.0, 1e300, f64::INFINITY] {
            assert_eq!((f16_bits(value), f16_bits(-value)), (0x7c00, 0xfc00), "{value:e}");
        }
        assert_eq!(f16_bits(f64::NAN) & 0x7e00, 0x7e00);
        assert_eq!((f16_bits(5e-324), f16_bits(-0.0)), (0, 0x8000));
    }
}
