//! What a texel holds, and what a fetch makes of it.

use crate::exec::alu::float_format::F16;
use crate::exec::alu::half::widen;
use crate::exec::texture_object::{TexelKind, TextureSampler};

/// One channel of a texel, or of a blend of several.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Texel {
    /// An integer, as 32 bits.
    Integer(u32),
    Number(f64),
}

impl Texel {
    /// The value of a channel from its bits.
    pub(crate) fn of(kind: TexelKind, bits: u64, as_fraction: bool) -> Self {
        let fraction = |value: f64, most: f64| Self::Number((value / most).max(-1.0));
        match (kind, as_fraction) {
            (TexelKind::U8, true) => fraction(f64::from(bits as u8), 255.0),
            (TexelKind::S8, true) => fraction(f64::from(bits as i8), 127.0),
            (TexelKind::U16, true) => fraction(f64::from(bits as u16), 65_535.0),
            (TexelKind::S16, true) => fraction(f64::from(bits as i16), 32_767.0),
            (TexelKind::U8 | TexelKind::U16 | TexelKind::U32, _) => Self::Integer(bits as u32),
            (TexelKind::S8, _) => Self::Integer(i32::from(bits as i8) as u32),
            (TexelKind::S16, _) => Self::Integer(i32::from(bits as i16) as u32),
            (TexelKind::S32, _) => Self::Integer(bits as u32),
            (TexelKind::F16, _) => Self::Number(widen(F16, bits)),
            (TexelKind::F32, _) => Self::Number(f64::from(f32::from_bits(bits as u32))),
        }
    }

    /// What is read where the texture has no texel, or no such channel.
    pub(crate) fn outside(kind: TexelKind, sampler: &TextureSampler, channel: usize) -> Self {
        Self::constant(kind, sampler, sampler.border.get(channel).copied().unwrap_or(0.0))
    }

    /// A channel that the texture does not have: the fourth is one, others are zero.
    pub(crate) fn missing(kind: TexelKind, sampler: &TextureSampler, channel: usize) -> Self {
        Self::constant(kind, sampler, if channel == 3 { 1.0 } else { 0.0 })
    }

    fn constant(kind: TexelKind, sampler: &TextureSampler, value: f32) -> Self {
        match kind {
            TexelKind::F16 | TexelKind::F32 => Self::Number(f64::from(value)),
            TexelKind::U32 | TexelKind::S32 => Self::Integer(value as i64 as u32),
            _ if sampler.as_fraction => Self::Number(f64::from(value)),
            _ => Self::Integer(value as i64 as u32),
        }
    }

    /// The bits of a register of 32 bits.
    pub(crate) fn bits(self) -> u64 {
        match self {
            Self::Integer(bits) => u64::from(bits),
            Self::Number(value) => u64::from((value as f32).to_bits()),
        }
    }

    /// The value for a blend; integers are not blended.
    pub(crate) fn number(self) -> Option<f64> {
        match self {
            Self::Integer(_) => None,
            Self::Number(value) => Some(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_extended_or_made_fractions() {
        assert_eq!(Texel::of(TexelKind::S8, 0x80, false), Texel::Integer(0xffff_ff80));
        assert_eq!(Texel::of(TexelKind::U16, 0x8000, false), Texel::Integer(0x8000));
        assert_eq!(Texel::of(TexelKind::U8, 255, true).bits(), u64::from(1.0_f32.to_bits()));
        assert_eq!(Texel::of(TexelKind::S8, 0x80, true).bits(), u64::from((-1.0_f32).to_bits()));
        assert_eq!(
            Texel::of(TexelKind::S16, 16_384, true).bits(),
            u64::from((16_384.0_f32 / 32_767.0).to_bits())
        );
        assert_eq!(Texel::of(TexelKind::F16, 0x3800, false), Texel::Number(0.5));
    }
}
