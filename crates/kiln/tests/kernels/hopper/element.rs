//! Elements of matrices as exact numbers.

/// Bits of an element.
pub(crate) fn bits(ty: &str) -> usize {
    match ty {
        "f32" | "tf32" | "s32" => 32,
        "f16" | "bf16" => 16,
        "b1" => 1,
        _ => 8,
    }
}

/// The value of an element; all are exact.
pub(crate) fn value(ty: &str, bits: u64) -> f64 {
    match ty {
        "f32" => f32::from_bits(bits as u32).into(),
        // The lowest bits of the register do not count.
        "tf32" => f32::from_bits(bits as u32 & !0x1fff).into(),
        "bf16" => f32::from_bits((bits as u32) << 16).into(),
        "f16" => float(bits, 5, 10),
        "e5m2" => float(bits, 5, 2),
        // There is one NaN of each sign, and no infinity.
        "e4m3" if bits & 0x7f == 0x7f => f64::NAN,
        "e4m3" if bits & 0x78 == 0x78 => {
            let magnitude = f64::from(bits as u32 & 7 | 8) * 32.0;
            if bits & 0x80 == 0 { magnitude } else { -magnitude }
        }
        "e4m3" => float(bits, 4, 3),
        "s8" => f64::from(bits as u8 as i8),
        "s32" => f64::from(bits as u32 as i32),
        _ => bits as f64,
    }
}

/// How large a sum takes an element to be: a subnormal number counts as the smallest normal one, whose exponent it has.
pub(crate) fn size(ty: &str, bits: u64) -> f64 {
    let least = match ty {
        "f32" | "tf32" | "bf16" => 2f64.powi(-126),
        "f16" | "e5m2" => 2f64.powi(-14),
        _ => 0.0,
    };
    match value(ty, bits).abs() {
        0.0 => 0.0,
        size => size.max(least),
    }
}

fn float(bits: u64, exponent_bits: u32, fraction_bits: u32) -> f64 {
    let top = (1 << exponent_bits) - 1;
    let exponent = (bits >> fraction_bits) as i32 & top;
    let fraction = (bits & ((1 << fraction_bits) - 1)) as f64 / f64::from(1 << fraction_bits);
    let bias = top >> 1;
    let magnitude = match exponent {
        0 => fraction * 2f64.powi(1 - bias),
        _ if exponent == top && fraction != 0.0 => f64::NAN,
        _ if exponent == top => f64::INFINITY,
        _ => (1.0 + fraction) * 2f64.powi(exponent - bias),
    };
    if bits >> (exponent_bits + fraction_bits) & 1 == 0 { magnitude } else { -magnitude }
}
