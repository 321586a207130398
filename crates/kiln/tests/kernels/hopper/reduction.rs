//! What a reduction makes of an element in memory and a new one.

use half::{bf16, f16};

/// The bytes that an operation leaves, by its name and the PTX type of the elements; `None` if there is no such reduction.
pub(crate) fn reduced(operation: &str, ty: &str, old: &[u8], new: &[u8]) -> Option<Vec<u8>> {
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
    let (a, b) = (number(old), number(new));
    let signed = |value: u64| if old.len() == 4 { i64::from(value as u32 as i32) } else { value as i64 };
    let result = match (operation, ty) {
        ("add", "u32" | "s32" | "u64" | "s64") => a.wrapping_add(b),
        ("min", "u32" | "u64") => a.min(b),
        ("max", "u32" | "u64") => a.max(b),
        ("min", "s32" | "s64") => signed(a).min(signed(b)) as u64,
        ("max", "s32" | "s64") => signed(a).max(signed(b)) as u64,
        ("inc", "u32") => {
            if a >= b {
                0
            } else {
                a + 1
            }
        }
        ("dec", "u32") => {
            if a == 0 || a > b {
                b
            } else {
                a - 1
            }
        }
        ("and", "b32" | "b64" | "u32" | "s32" | "u64" | "s64") => a & b,
        ("or", "b32" | "b64" | "u32" | "s32" | "u64" | "s64") => a | b,
        ("xor", "b32" | "b64" | "u32" | "s32" | "u64" | "s64") => a ^ b,
        ("add", "f32") => (f32::from_bits(a as u32) + f32::from_bits(b as u32)).to_bits().into(),
        ("add", "f64") => (f64::from_bits(a) + f64::from_bits(b)).to_bits(),
        (_, "f16") => {
            let [a, b] = [a, b].map(|bits| f16::from_bits(bits as u16).to_f32());
            f16::from_f32(float(operation, a, b)?).to_bits().into()
        }
        (_, "bf16") => {
            let [a, b] = [a, b].map(|bits| bf16::from_bits(bits as u16).to_f32());
            bf16::from_f32(float(operation, a, b)?).to_bits().into()
        }
        _ => return None,
    };
    Some(result.to_le_bytes()[..old.len()].to_vec())
}

/// In more bits than the result has: rounding twice changes nothing.
fn float(operation: &str, a: f32, b: f32) -> Option<f32> {
    Some(match operation {
        "add" => a + b,
        "min" => a.min(b),
        "max" => a.max(b),
        _ => return None,
    })
}
