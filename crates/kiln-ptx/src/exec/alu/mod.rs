//! Arithmetic on columns: what an instruction computes, apart from where its operands are.
//!
//! Every operation is a plain function over whole columns, chosen once when a function is lowered. It has no effect
//! but its result, so lanes outside the mask may be skipped or computed as is faster.

use super::undefined::DataFlow;
use super::warp_register::Column;
use kiln_lanes::InstructionSet;

pub(crate) use convert::Number;
pub(crate) use simple_op::SimpleOp;

pub(crate) mod approximate;
pub(crate) mod bits;
pub(crate) mod compare;
pub(crate) mod convert;
pub(crate) mod double;
pub(crate) mod exact;
pub(crate) mod float_format;
pub(crate) mod half;
pub(crate) mod integer;
pub(crate) mod packed;
mod scale;
pub(crate) mod simple_op;
pub(crate) mod single;
pub(crate) mod video;

/// What an operation reads.
pub(crate) struct Input<'a> {
    /// The instructions to compute with.
    pub(crate) set: InstructionSet,
    pub(crate) mask: u32,
    pub(crate) mode: &'a Mode,
    pub(crate) a: &'a Column,
    pub(crate) b: &'a Column,
    pub(crate) c: &'a Column,
    pub(crate) d: &'a Column,
}

/// An operation with up to four operands and one result.
pub(crate) type Alu = fn(&Input<'_>, &mut Column);

/// A comparison: the lanes for which it holds.
pub(crate) type Test = fn(&Input<'_>) -> u32;

/// How a result is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Round {
    /// To nearest, ties to even.
    #[default]
    Nearest,
    /// Toward zero.
    Zero,
    /// Toward minus infinity.
    Down,
    /// Toward plus infinity.
    Up,
    /// To nearest, ties away from zero.
    Away,
}

/// Modifiers that change how a float operation treats its operands and its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Mode {
    pub(crate) round: Round,
    /// Subnormal operands and results become zero of the same sign.
    pub(crate) ftz: bool,
    /// The result is clamped to 0..=1, NaN becomes 0.
    pub(crate) sat: bool,
    /// A negative result or NaN becomes 0.
    pub(crate) relu: bool,
    /// `min` and `max` answer NaN when an operand is NaN.
    pub(crate) nan: bool,
    /// `min` and `max` compare magnitudes and take the exclusive or of the signs.
    pub(crate) xorsign: bool,
    /// A conversion rounds to a whole number, also into a float.
    pub(crate) integral: bool,
    /// A conversion clamps to the largest number of the format.
    pub(crate) satfinite: bool,
    /// What a conversion reads and writes.
    pub(crate) from: Number,
    pub(crate) to: Number,
    /// The types of a video instruction.
    pub(crate) small: packed::Small,
    /// What it does with undefined bits.
    pub(crate) flow: DataFlow,
    /// The operation by name, if it has one.
    pub(crate) simple: SimpleOp,
}

impl Mode {
    /// Whether the operation is what the host computes: nearest, nothing flushed or clamped.
    #[inline(always)]
    pub(crate) fn is_plain(self) -> bool {
        self.round == Round::Nearest && !self.ftz && !self.sat && !self.relu
    }
}

/// Makes an [`Alu`] of an expression over one lane's operands.
macro_rules! lanes {
    (|$a:ident| $body:expr) => {
        $crate::exec::alu::lanes!(|$a, _b, _c| $body)
    };
    (|$a:ident, $b:ident| $body:expr) => {
        $crate::exec::alu::lanes!(|$a, $b, _c| $body)
    };
    (|$a:ident, $b:ident, $c:ident| $body:expr) => {
        $crate::exec::alu::lanes!(_mode, |$a, $b, $c| $body)
    };
    ($mode:ident, |$a:ident, $b:ident, $c:ident| $body:expr) => {
        $crate::exec::alu::lanes!($mode, |$a, $b, $c, _d| $body)
    };
    ($mode:ident, |$a:ident, $b:ident, $c:ident, $d:ident| $body:expr) => {{
        struct Lanes<'a>(&'a $crate::exec::alu::Input<'a>, &'a mut $crate::exec::warp_register::Column);
        impl kiln_lanes::LaneLoop for Lanes<'_> {
            type Output = ();
            #[inline(always)]
            fn run<const FUSED: bool>(self) {
                let Self(input, out) = self;
                let $mode = *input.mode;
                $crate::exec::warp_register::each_computed(input.mask, |lane| {
                    let ($a, $b, $c, $d) = (input.a[lane], input.b[lane], input.c[lane], input.d[lane]);
                    out[lane] = $body;
                });
            }
        }
        fn run(input: &$crate::exec::alu::Input<'_>, out: &mut $crate::exec::warp_register::Column) {
            input.set.run(Lanes(input, out));
        }
        run as $crate::exec::alu::Alu
    }};
}
pub(crate) use lanes;

/// Makes a [`Test`] of a condition over one lane's operands.
macro_rules! test {
    (|$a:ident, $b:ident| $body:expr) => {
        $crate::exec::alu::test!(_mode, |$a, $b| $body)
    };
    ($mode:ident, |$a:ident, $b:ident| $body:expr) => {{
        struct Lanes<'a>(&'a $crate::exec::alu::Input<'a>);
        impl kiln_lanes::LaneLoop for Lanes<'_> {
            type Output = u32;
            #[inline(always)]
            fn run<const FUSED: bool>(self) -> u32 {
                let (input, $mode) = (self.0, *self.0.mode);
                // As wide as the operands, so that it stays in the same vectors.
                let mut found = 0u64;
                $crate::exec::warp_register::each_computed(input.mask, |lane| {
                    let ($a, $b) = (input.a[lane], input.b[lane]);
                    found |= u64::from($body) << lane;
                });
                found as u32 & input.mask
            }
        }
        fn run(input: &$crate::exec::alu::Input<'_>) -> u32 {
            input.set.run(Lanes(input))
        }
        run as $crate::exec::alu::Test
    }};
}
pub(crate) use test;
