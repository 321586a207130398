//! `f16` and `bf16` arithmetic, one number or two packed in 32 bits.
//!
//! Sums and products of halves are exact in a double, and a fused one is rounded to odd there, so that the one
//! rounding into the narrow format is the only one.

use super::float_format::{BF16, F16, F64, Format};
use super::single::{extreme, finish_in, fuse_to_odd};
use super::{Alu, Input, Mode};
use crate::exec::warp_register::{Column, each};

/// What is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HalfOp {
    Add,
    Subtract,
    Multiply,
    Fused,
    Negate,
    Absolute,
    Minimum,
    Maximum,
    Exp2,
    Tanh,
}

/// How halves lie in a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    F16,
    F16x2,
    Bf16,
    Bf16x2,
}

impl Layout {
    pub(crate) fn format(self) -> Format {
        match self {
            Self::F16 | Self::F16x2 => F16,
            Self::Bf16 | Self::Bf16x2 => BF16,
        }
    }

    pub(crate) fn is_packed(self) -> bool {
        matches!(self, Self::F16x2 | Self::Bf16x2)
    }
}

/// The bits of 1.0.
pub(crate) fn one(format: Format) -> u64 {
    if format.exponent_bits == F16.exponent_bits { 0x3c00 } else { 0x3f80 }
}

/// The value of a half.
#[inline]
pub(crate) fn widen(format: Format, bits: u64) -> f64 {
    if format.fraction_bits == BF16.fraction_bits {
        return f64::from(f32::from_bits((bits as u32) << 16));
    }
    f64::from_bits(F64.pack(format.unpack(bits & 0xffff), super::Round::Nearest))
}

/// The half nearest to a value, or as the mode rounds.
pub(crate) fn narrow(format: Format, value: f64, mode: Mode) -> u64 {
    format.pack(F64.unpack(value.to_bits()), mode.round)
}

/// One operation on one half.
pub(crate) fn compute(op: HalfOp, format: Format, operands: [u64; 3], mode: Mode) -> u64 {
    let flush = |bits: u64| if mode.ftz { format.flush(bits & 0xffff) } else { bits & 0xffff };
    let [a, b, c] = operands.map(flush);
    let wide = |bits| widen(format, bits);
    let value = match op {
        HalfOp::Negate | HalfOp::Absolute if format.is_nan(a) => return format.nan,
        HalfOp::Negate => return a ^ format.sign_bit(),
        HalfOp::Absolute => return a & (format.sign_bit() - 1),
        HalfOp::Minimum => return extreme(format, a, b, mode, true),
        HalfOp::Maximum => return extreme(format, a, b, mode, false),
        HalfOp::Add => wide(a) + wide(b),
        HalfOp::Subtract => wide(a) - wide(b),
        HalfOp::Multiply => wide(a) * wide(b),
        HalfOp::Fused => fuse_to_odd(wide(a), wide(b), wide(c)),
        HalfOp::Exp2 => wide(a).exp2(),
        HalfOp::Tanh => wide(a).tanh(),
    };
    finish_in(format, one(format), narrow(format, value, mode), mode)
}

fn run<const OP: u8, const LAYOUT: u8>(input: &Input<'_>, out: &mut Column) {
    let (op, layout) = (OPS[OP as usize], LAYOUTS[LAYOUT as usize]);
    let format = layout.format();
    each(input.mask, |lane| {
        let operands = [input.a[lane], input.b[lane], input.c[lane]];
        let low = compute(op, format, operands, *input.mode);
        out[lane] = if layout.is_packed() {
            low | compute(op, format, operands.map(|bits| bits >> 16), *input.mode) << 16
        } else {
            low
        };
    });
}

const OPS: [HalfOp; 10] = [
    HalfOp::Add,
    HalfOp::Subtract,
    HalfOp::Multiply,
    HalfOp::Fused,
    HalfOp::Negate,
    HalfOp::Absolute,
    HalfOp::Minimum,
    HalfOp::Maximum,
    HalfOp::Exp2,
    HalfOp::Tanh,
];
const LAYOUTS: [Layout; 4] = [Layout::F16, Layout::F16x2, Layout::Bf16, Layout::Bf16x2];

fn with_layout<const OP: u8>(layout: Layout) -> Alu {
    match layout {
        Layout::F16 => run::<OP, 0>,
        Layout::F16x2 => run::<OP, 1>,
        Layout::Bf16 => run::<OP, 2>,
        Layout::Bf16x2 => run::<OP, 3>,
    }
}

/// The operation for a layout.
pub(crate) fn operation(op: HalfOp, layout: Layout) -> Alu {
    match op {
        HalfOp::Add => with_layout::<0>(layout),
        HalfOp::Subtract => with_layout::<1>(layout),
        HalfOp::Multiply => with_layout::<2>(layout),
        HalfOp::Fused => with_layout::<3>(layout),
        HalfOp::Negate => with_layout::<4>(layout),
        HalfOp::Absolute => with_layout::<5>(layout),
        HalfOp::Minimum => with_layout::<6>(layout),
        HalfOp::Maximum => with_layout::<7>(layout),
        HalfOp::Exp2 => with_layout::<8>(layout),
        HalfOp::Tanh => with_layout::<9>(layout),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::alu::Round;
    use crate::exec::alu::exact;

    #[test]
    fn fused_halves_are_rounded_once() {
        let mut state = 3u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 48
        };
        for _ in 0..100_000 {
            let [a, b, c] = [next(), next(), next()];
            for format in [F16, BF16] {
                let ours = compute(HalfOp::Fused, format, [a, b, c], Mode::default());
                let exact = exact::fused(
                    format.unpack(a),
                    format.unpack(b),
                    format.unpack(c),
                    format,
                    Round::Nearest,
                );
                assert_eq!(ours, exact, "{a:#x} * {b:#x} + {c:#x}");
            }
        }
    }
}
