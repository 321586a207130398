//! Elements as numbers, and numbers as elements.

use kiln_operation::ElementType;

/// A floating point format of at most 32 bits: bits of exponent and of fraction.
#[derive(Clone, Copy)]
struct Format {
    exponent_bits: u32,
    fraction_bits: u32,
}

const F16: Format = Format { exponent_bits: 5, fraction_bits: 10 };
const BF16: Format = Format { exponent_bits: 8, fraction_bits: 7 };
const F8E4M3: Format = Format { exponent_bits: 4, fraction_bits: 3 };
const F32: Format = Format { exponent_bits: 8, fraction_bits: 23 };

/// The number that the bytes of an element mean.
pub(super) fn decode(element: ElementType, bytes: &[u8]) -> f64 {
    match (element, bytes) {
        (ElementType::F8E4M3, [bits]) if bits & 0x7f == 0x7f => f64::NAN,
        // This format has no infinities: its largest exponent is one as others are.
        (ElementType::F8E4M3, [bits]) => F8E4M3.decode_finite(u32::from(*bits)),
        (ElementType::F16, [low, high]) => F16.decode(u32::from(u16::from_le_bytes([*low, *high]))),
        (ElementType::Bf16, [low, high]) => BF16.decode(u32::from(u16::from_le_bytes([*low, *high]))),
        (ElementType::F32, [a, b, c, d]) => f64::from(f32::from_le_bytes([*a, *b, *c, *d])),
        (ElementType::I32, [a, b, c, d]) => f64::from(i32::from_le_bytes([*a, *b, *c, *d])),
        (ElementType::I8, [byte]) => f64::from(*byte as i8),
        (ElementType::F64, bytes) => bytes.try_into().map_or(f64::NAN, f64::from_le_bytes),
        _ => f64::NAN,
    }
}

/// Appends the bytes of a number as an element: the nearest one, and of two the even one. Integers keep their lowest bits.
pub(super) fn encode(element: ElementType, value: f64, into: &mut Vec<u8>) {
    match element {
        // No operation writes it.
        ElementType::F8E4M3 => into.push(0x7f),
        ElementType::F16 => into.extend((F16.encode(value) as u16).to_le_bytes()),
        ElementType::Bf16 => into.extend((BF16.encode(value) as u16).to_le_bytes()),
        ElementType::F32 => into.extend(F32.encode(value).to_le_bytes()),
        ElementType::F64 if value.is_nan() => into.extend(0x7ff8_0000_0000_0000_u64.to_le_bytes()),
        ElementType::F64 => into.extend(value.to_le_bytes()),
        ElementType::I8 => into.push(value as i64 as u8),
        ElementType::I32 => into.extend((value as i64 as i32).to_le_bytes()),
        // The types of a newer version are refused when the operation is loaded.
        _ => {}
    }
}

/// The nearest number of 8 bits, of two the even one. What is larger than the largest one is the largest one, as conversions on the device have it.
pub(super) fn encode_f8e4m3(value: f64) -> u8 {
    const LARGEST: u32 = 0x7e;
    if value.is_nan() {
        return 0x7f;
    }
    let sign_bit = u32::from(value.is_sign_negative()) << 7;
    let magnitude = value.abs();
    if magnitude >= 448.0 {
        return (sign_bit | LARGEST) as u8;
    }
    let exponent = ((magnitude.to_bits() >> 52 & 0x7ff) as i32 - 1023).max(1 - F8E4M3.bias());
    let scaled = magnitude * power_of_two(F8E4M3.fraction_bits as i32 - exponent);
    let base = ((exponent + F8E4M3.bias() - 1) as u32) << F8E4M3.fraction_bits;
    (sign_bit | (base + scaled.round_ties_even() as u32).min(LARGEST)) as u8
}

impl Format {
    fn bias(self) -> i32 {
        (1 << (self.exponent_bits - 1)) - 1
    }

    fn infinity(self) -> u32 {
        ((1 << self.exponent_bits) - 1) << self.fraction_bits
    }

    fn decode(self, bits: u32) -> f64 {
        let magnitude = bits & !(1 << (self.exponent_bits + self.fraction_bits));
        let sign = if magnitude == bits { 1.0 } else { -1.0 };
        match magnitude.cmp(&self.infinity()) {
            std::cmp::Ordering::Less => self.decode_finite(bits),
            std::cmp::Ordering::Equal => sign * f64::INFINITY,
            std::cmp::Ordering::Greater => f64::NAN,
        }
    }

    fn decode_finite(self, bits: u32) -> f64 {
        let fraction = bits & ((1 << self.fraction_bits) - 1);
        let exponent = bits >> self.fraction_bits & ((1 << self.exponent_bits) - 1);
        let sign = if bits >> (self.exponent_bits + self.fraction_bits) & 1 == 1 { -1.0 } else { 1.0 };
        let (significand, exponent) = match exponent {
            0 => (fraction, 1),
            exponent => (fraction | 1 << self.fraction_bits, exponent),
        };
        let scale = exponent as i32 - self.bias() - self.fraction_bits as i32;
        sign * f64::from(significand) * power_of_two(scale)
    }

    fn encode(self, value: f64) -> u32 {
        let sign_bit = u32::from(value.is_sign_negative()) << (self.exponent_bits + self.fraction_bits);
        if value.is_nan() {
            return self.infinity() | 1 << (self.fraction_bits - 1);
        }
        if value.is_infinite() {
            return sign_bit | self.infinity();
        }
        let exponent = (value.to_bits() >> 52 & 0x7ff) as i32 - 1023;
        let exponent = exponent.max(1 - self.bias());
        if exponent > self.bias() {
            return sign_bit | self.infinity();
        }
        // Both factors of the scale are powers of two, so that only the rounding loses bits.
        let scaled = value.abs() * power_of_two(self.fraction_bits as i32 - exponent);
        let base = ((exponent + self.bias() - 1) as u32) << self.fraction_bits;
        // A significand that is rounded up to the next power of two carries into the exponent.
        sign_bit | (base + scaled.round_ties_even() as u32).min(self.infinity())
    }
}

/// `2^exponent`, for exponents of normal numbers.
pub(super) fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((1023 + exponent.clamp(-1022, 1023)) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_a_small_format_is_its_own_nearest() {
        for bits in 0..=u32::from(u16::MAX) {
            for format in [F16, BF16] {
                let value = format.decode(bits);
                if !value.is_nan() {
                    assert_eq!(format.encode(value), bits, "{value}");
                }
            }
        }
        assert_eq!(F16.decode(0x3c00), 1.0);
        assert_eq!(F16.decode(0x0001), 2.0_f64.powi(-24));
        assert_eq!(BF16.decode(0x3f80), 1.0);
        assert_eq!(F8E4M3.decode_finite(0x7e), 448.0);
        assert_eq!(F8E4M3.decode_finite(0x01), 2.0_f64.powi(-9));
    }

    #[test]
    fn every_number_of_eight_bits_is_its_own_nearest() {
        for bits in (0..=u8::MAX).filter(|bits| bits & 0x7f != 0x7f) {
            let value = decode(ElementType::F8E4M3, &[bits]);
            assert_eq!(encode_f8e4m3(value), bits, "{value}");
        }
        assert_eq!((encode_f8e4m3(1e9), encode_f8e4m3(-1e9), encode_f8e4m3(f64::NAN)), (0x7e, 0xfe, 0x7f));
        assert_eq!((encode_f8e4m3(17.0), encode_f8e4m3(19.0)), (0x58, 0x5a));
    }

    #[test]
    fn single_precision_is_rounded_as_the_language_does() {
        let mut state = 7_u64;
        for _ in 0..100_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let value = f64::from_bits(state);
            if !value.is_nan() {
                assert_eq!(F32.encode(value), (value as f32).to_bits(), "{value:e}");
            }
            let near = f64::from(f32::from_bits((state >> 32) as u32)) * (1.0 + 2.0_f64.powi(-25));
            if !near.is_nan() {
                assert_eq!(F32.encode(near), (near as f32).to_bits(), "{near:e}");
            }
        }
    }

    #[test]
    fn ties_go_to_even_and_large_numbers_to_infinity() {
        assert_eq!(F16.encode(65_519.0), 0x7bff);
        assert_eq!(F16.encode(65_520.0), 0x7c00);
        assert_eq!(F16.encode(-1e300), 0xfc00);
        assert_eq!(BF16.encode(1.0 + 2.0_f64.powi(-8)), 0x3f80);
        assert_eq!(BF16.encode(1.0 + 3.0 * 2.0_f64.powi(-8)), 0x3f82);
        assert_eq!(F16.encode(2.0_f64.powi(-25)), 0);
        assert_eq!(F16.encode(f64::NAN), 0x7e00);
    }
}
