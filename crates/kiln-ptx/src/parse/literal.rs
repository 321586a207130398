//! Number literals.

use crate::operand::Immediate;

/// Reads a literal: decimal, `0x`, `0b`, octal, with an optional `U`; `0f` and `0d` with exact bits; decimal floats.
/// `None` when it is none of these or does not fit 64 bits.
pub(super) fn read(text: &str) -> Option<Immediate> {
    let bytes = text.as_bytes();
    if bytes.first() == Some(&b'0') {
        match bytes.get(1) {
            Some(b'f' | b'F') => return exact(text, 8).map(|bits| Immediate::F32(bits as u32)),
            Some(b'd' | b'D') => return exact(text, 16).map(Immediate::F64),
            _ => {}
        }
    }
    let hexadecimal = matches!(bytes.get(1), Some(b'x' | b'X'));
    if !hexadecimal && bytes.iter().any(|b| matches!(b, b'.' | b'e' | b'E')) {
        return text.parse::<f64>().ok().map(|x| Immediate::F64(x.to_bits()));
    }
    integer(text)
}

fn exact(text: &str, digits: usize) -> Option<u64> {
    let hex = text.get(2..).filter(|hex| hex.len() == digits)?;
    u64::from_str_radix(hex, 16).ok()
}

fn integer(text: &str) -> Option<Immediate> {
    let (digits, unsigned) = match text.strip_suffix(['U', 'u']) {
        Some(digits) => (digits, true),
        None => (text, false),
    };
    let prefix = digits.get(..2).unwrap_or("");
    let value = match prefix {
        "0x" | "0X" => u64::from_str_radix(digits.get(2..)?, 16).ok()?,
        "0b" | "0B" => u64::from_str_radix(digits.get(2..)?, 2).ok()?,
        _ if digits.len() > 1 && digits.starts_with('0') => u64::from_str_radix(digits.get(1..)?, 8).ok()?,
        _ => digits.parse().ok()?,
    };
    match i64::try_from(value) {
        Ok(value) if !unsigned => Some(Immediate::Signed(value)),
        _ => Some(Immediate::Unsigned(value)),
    }
}
