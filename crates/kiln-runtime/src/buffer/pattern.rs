//! Values a device can fill memory with.

use kiln_driver::Pattern;

/// The pattern that repeats these bytes, if the device has one: one, two or four of them, or any number of equal ones.
pub fn pattern(bytes: &[u8]) -> Option<Pattern> {
    match *bytes {
        [] => Some(Pattern::U8(0)),
        [byte] => Some(Pattern::U8(byte)),
        [a, b] => Some(Pattern::U16(u16::from_ne_bytes([a, b]))),
        [a, b, c, d] => Some(Pattern::U32(u32::from_ne_bytes([a, b, c, d]))),
        [first, ..] if bytes.iter().all(|byte| *byte == first) => Some(Pattern::U8(first)),
        _ => None,
    }
}
