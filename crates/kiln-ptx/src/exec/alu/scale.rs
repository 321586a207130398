//! `ue8m0`: powers of two from 2^-127 to 2^127, and NaN. They are the scales of blocks of small floats, and have neither sign nor zero.

use super::{Mode, Round};

/// What stands for NaN.
const NAN: u64 = 0xff;
/// 2^127.
const LARGEST: u64 = 0xfe;
/// The single 2^-127, which is subnormal.
const SMALLEST_SINGLE: u64 = 0x0040_0000;

/// The scale of a single's magnitude: its exponent, or the next one if it is rounded up and not a power of two. Infinity is the largest scale with
/// `.satfinite`, and NaN without.
pub(super) fn scale_of_single(bits: u64, mode: Mode) -> u64 {
    let magnitude = bits & 0x7fff_ffff;
    let (exponent, fraction) = (magnitude >> 23, magnitude & 0x7f_ffff);
    if exponent == NAN {
        return if fraction == 0 && mode.satfinite { LARGEST } else { NAN };
    }
    let is_above = fraction != 0 && magnitude > SMALLEST_SINGLE;
    match exponent + u64::from(mode.round == Round::Up && is_above) {
        NAN if mode.satfinite => LARGEST,
        scale => scale,
    }
}

/// A scale as `bf16`.
pub(super) fn brain_of_scale(scale: u64) -> u64 {
    match scale {
        0 => SMALLEST_SINGLE >> 16,
        NAN => 0x7fff,
        exponent => exponent << 7,
    }
}
