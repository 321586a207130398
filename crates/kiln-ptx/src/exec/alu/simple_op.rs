//! Operations that are known by name beside the function that computes them.
//!
//! Those on 32-bit values can be computed on columns of words, which takes half as many vectors, and some of them on patterns of lanes. What they compute is
//! what the [`Alu`](super::Alu) or [`Test`](super::Test) of the same step computes.

use super::float_format::F32;
use super::single::fuse;
use crate::exec::warp_register::LANES;
use kiln_lanes::LaneLoop;

/// One 32-bit value per lane.
pub(crate) type Words = [u32; LANES];

/// An operation on columns of words, or of which the result on patterns is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum SimpleOp {
    /// Any other.
    #[default]
    None,
    Add32,
    Subtract32,
    /// `a * b + c`.
    MultiplyAdd32,
    And32,
    Or32,
    Xor32,
    ShiftLeft32,
    ShiftRightUnsigned32,
    ShiftRightSigned32,
    MinimumUnsigned32,
    MaximumUnsigned32,
    MinimumSigned32,
    MaximumSigned32,
    /// `f32`, to nearest, nothing flushed or clamped.
    AddSingle,
    SubtractSingle,
    MultiplySingle,
    FusedSingle,
    /// An integer to the nearest `f32`.
    ConvertSigned,
    ConvertUnsigned,
    /// An `f32` to an integer, toward zero.
    TruncateSigned,
    TruncateUnsigned,
    Add64,
    Subtract64,
    MultiplyAdd64,
    ShiftLeft64,
    /// `a * b + c` in twice the width.
    MultiplyWideUnsigned,
    MultiplyWideSigned,
    WidenUnsigned,
    WidenSigned,
    Cut32,
    Equal32,
    Unequal32,
    LessUnsigned32,
    LessEqualUnsigned32,
    GreaterUnsigned32,
    GreaterEqualUnsigned32,
    LessSigned32,
    LessEqualSigned32,
    GreaterSigned32,
    GreaterEqualSigned32,
    /// `f32`, nothing flushed. These hold for no NaN but for the ones that say so; `UnequalSingle` is "less or greater".
    EqualSingle,
    UnequalSingle,
    LessSingle,
    LessEqualSingle,
    GreaterSingle,
    GreaterEqualSingle,
    EqualOrNan,
    UnequalOrNan,
    LessOrNan,
    LessEqualOrNan,
    GreaterOrNan,
    GreaterEqualOrNan,
    NumbersSingle,
    NanSingle,
}

impl SimpleOp {
    /// All of them.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 54] = [
        Self::Add32,
        Self::Subtract32,
        Self::MultiplyAdd32,
        Self::And32,
        Self::Or32,
        Self::Xor32,
        Self::ShiftLeft32,
        Self::ShiftRightUnsigned32,
        Self::ShiftRightSigned32,
        Self::MinimumUnsigned32,
        Self::MaximumUnsigned32,
        Self::MinimumSigned32,
        Self::MaximumSigned32,
        Self::AddSingle,
        Self::SubtractSingle,
        Self::MultiplySingle,
        Self::FusedSingle,
        Self::ConvertSigned,
        Self::ConvertUnsigned,
        Self::TruncateSigned,
        Self::TruncateUnsigned,
        Self::Add64,
        Self::Subtract64,
        Self::MultiplyAdd64,
        Self::ShiftLeft64,
        Self::MultiplyWideUnsigned,
        Self::MultiplyWideSigned,
        Self::WidenUnsigned,
        Self::WidenSigned,
        Self::Cut32,
        Self::Equal32,
        Self::Unequal32,
        Self::LessUnsigned32,
        Self::LessEqualUnsigned32,
        Self::GreaterUnsigned32,
        Self::GreaterEqualUnsigned32,
        Self::LessSigned32,
        Self::LessEqualSigned32,
        Self::GreaterSigned32,
        Self::GreaterEqualSigned32,
        Self::EqualSingle,
        Self::UnequalSingle,
        Self::LessSingle,
        Self::LessEqualSingle,
        Self::GreaterSingle,
        Self::GreaterEqualSingle,
        Self::EqualOrNan,
        Self::UnequalOrNan,
        Self::LessOrNan,
        Self::LessEqualOrNan,
        Self::GreaterOrNan,
        Self::GreaterEqualOrNan,
        Self::NumbersSingle,
        Self::NanSingle,
    ];

    /// Whether it is computed on columns of words.
    #[inline(always)]
    pub(crate) fn is_on_words(self) -> bool {
        self as u8 >= Self::Add32 as u8 && self as u8 <= Self::TruncateUnsigned as u8
    }

    /// Whether it compares.
    #[inline(always)]
    pub(crate) fn is_comparison(self) -> bool {
        self as u8 >= Self::Equal32 as u8
    }

    /// Whether its operands have a sign.
    #[inline(always)]
    pub(crate) fn is_signed(self) -> bool {
        self as u8 >= Self::LessSigned32 as u8 && !self.compares_singles()
    }

    /// Whether it compares `f32`.
    #[inline(always)]
    pub(crate) fn compares_singles(self) -> bool {
        self as u8 >= Self::EqualSingle as u8
    }

    /// How many operands it reads.
    #[inline(always)]
    pub(crate) fn operands(self) -> usize {
        match self {
            Self::WidenUnsigned | Self::WidenSigned | Self::Cut32 => 1,
            Self::ConvertSigned | Self::ConvertUnsigned | Self::TruncateSigned | Self::TruncateUnsigned => 1,
            Self::MultiplyAdd32 | Self::FusedSingle | Self::MultiplyAdd64 => 3,
            Self::MultiplyWideUnsigned | Self::MultiplyWideSigned => 3,
            _ => 2,
        }
    }

    /// Whether a comparison of integers holds for two numbers.
    #[inline(always)]
    pub(crate) fn holds(self, a: i64, b: i64) -> bool {
        match self {
            Self::Equal32 => a == b,
            Self::Unequal32 => a != b,
            Self::LessUnsigned32 | Self::LessSigned32 => a < b,
            Self::LessEqualUnsigned32 | Self::LessEqualSigned32 => a <= b,
            Self::GreaterUnsigned32 | Self::GreaterSigned32 => a > b,
            _ => a >= b,
        }
    }
}

/// An operation on words.
pub(crate) struct OnWords<'a> {
    pub(crate) op: SimpleOp,
    pub(crate) from: [&'a Words; 3],
    pub(crate) out: &'a mut Words,
}

impl OnWords<'_> {
    #[inline(always)]
    fn each(self, f: impl Fn(u32, u32, u32) -> u32) {
        let [a, b, c] = self.from;
        // In an array that nothing else can be, so that the loop is made of vectors.
        let mut out = [0; LANES];
        for (lane, out) in out.iter_mut().enumerate() {
            *out = f(a[lane], b[lane], c[lane]);
        }
        *self.out = out;
    }

    #[inline(always)]
    fn each_single(self, f: impl Fn(f32, f32, f32) -> f32) {
        self.each(|a, b, c| {
            let result = f(f32::from_bits(a), f32::from_bits(b), f32::from_bits(c));
            if result.is_nan() { F32.nan as u32 } else { result.to_bits() }
        });
    }
}

impl LaneLoop for OnWords<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        match self.op {
            SimpleOp::Add32 => self.each(|a, b, _| a.wrapping_add(b)),
            SimpleOp::Subtract32 => self.each(|a, b, _| a.wrapping_sub(b)),
            SimpleOp::MultiplyAdd32 => self.each(|a, b, c| a.wrapping_mul(b).wrapping_add(c)),
            SimpleOp::And32 => self.each(|a, b, _| a & b),
            SimpleOp::Or32 => self.each(|a, b, _| a | b),
            SimpleOp::Xor32 => self.each(|a, b, _| a ^ b),
            SimpleOp::ShiftLeft32 => self.each(|a, b, _| if b > 31 { 0 } else { a << b }),
            SimpleOp::ShiftRightUnsigned32 => self.each(|a, b, _| if b > 31 { 0 } else { a >> b }),
            SimpleOp::ShiftRightSigned32 => self.each(|a, b, _| (a as i32 >> b.min(31)) as u32),
            SimpleOp::MinimumUnsigned32 => self.each(|a, b, _| a.min(b)),
            SimpleOp::MaximumUnsigned32 => self.each(|a, b, _| a.max(b)),
            SimpleOp::MinimumSigned32 => self.each(|a, b, _| (a as i32).min(b as i32) as u32),
            SimpleOp::MaximumSigned32 => self.each(|a, b, _| (a as i32).max(b as i32) as u32),
            SimpleOp::AddSingle => self.each_single(|a, b, _| a + b),
            SimpleOp::SubtractSingle => self.each_single(|a, b, _| a - b),
            SimpleOp::MultiplySingle => self.each_single(|a, b, _| a * b),
            SimpleOp::FusedSingle if FUSED => self.each_single(|a, b, c| a.mul_add(b, c)),
            SimpleOp::FusedSingle => self.each_single(fuse),
            SimpleOp::ConvertSigned => self.each(|a, _, _| (a as i32 as f32).to_bits()),
            SimpleOp::ConvertUnsigned => self.each(|a, _, _| (a as f32).to_bits()),
            // NaN becomes zero, and what is out of range the nearest integer that is not.
            SimpleOp::TruncateSigned => self.each(|a, _, _| f32::from_bits(a) as i32 as u32),
            SimpleOp::TruncateUnsigned => self.each(|a, _, _| f32::from_bits(a) as u32),
            _ => {}
        }
    }
}

/// What an operation on words makes of one value of each operand.
pub(crate) fn shared_word(op: SimpleOp, [a, b, c]: [u32; 3]) -> u32 {
    let mut out = [0; LANES];
    OnWords { op, from: [&[a; LANES], &[b; LANES], &[c; LANES]], out: &mut out }.run::<false>();
    out[0]
}

/// A comparison of words: the lanes for which it holds.
pub(crate) struct CompareWords<'a> {
    pub(crate) op: SimpleOp,
    pub(crate) a: &'a Words,
    pub(crate) b: &'a Words,
}

impl CompareWords<'_> {
    #[inline(always)]
    fn each(self, holds: impl Fn(u32, u32) -> bool) -> u32 {
        let mut found = 0;
        for (lane, (a, b)) in self.a.iter().zip(self.b).enumerate() {
            found |= u32::from(holds(*a, *b)) << lane;
        }
        found
    }

    #[inline(always)]
    fn each_single(self, holds: impl Fn(f32, f32) -> bool) -> u32 {
        self.each(|a, b| holds(f32::from_bits(a), f32::from_bits(b)))
    }
}

impl LaneLoop for CompareWords<'_> {
    type Output = u32;

    #[inline(always)]
    fn run<const FUSED: bool>(self) -> u32 {
        match self.op {
            SimpleOp::Equal32 => self.each(|a, b| a == b),
            SimpleOp::Unequal32 => self.each(|a, b| a != b),
            SimpleOp::LessUnsigned32 => self.each(|a, b| a < b),
            SimpleOp::LessEqualUnsigned32 => self.each(|a, b| a <= b),
            SimpleOp::GreaterUnsigned32 => self.each(|a, b| a > b),
            SimpleOp::GreaterEqualUnsigned32 => self.each(|a, b| a >= b),
            SimpleOp::LessSigned32 => self.each(|a, b| (a as i32) < b as i32),
            SimpleOp::LessEqualSigned32 => self.each(|a, b| a as i32 <= b as i32),
            SimpleOp::GreaterSigned32 => self.each(|a, b| a as i32 > b as i32),
            SimpleOp::GreaterEqualSigned32 => self.each(|a, b| a as i32 >= b as i32),
            SimpleOp::EqualSingle => self.each_single(|a, b| a == b),
            SimpleOp::UnequalSingle => self.each_single(|a, b| (a < b) | (a > b)),
            SimpleOp::LessSingle => self.each_single(|a, b| a < b),
            SimpleOp::LessEqualSingle => self.each_single(|a, b| a <= b),
            SimpleOp::GreaterSingle => self.each_single(|a, b| a > b),
            SimpleOp::GreaterEqualSingle => self.each_single(|a, b| a >= b),
            // What holds for NaN holds where the opposite does not.
            SimpleOp::EqualOrNan => !self.each_single(|a, b| (a < b) | (a > b)),
            SimpleOp::UnequalOrNan => !self.each_single(|a, b| a == b),
            SimpleOp::LessOrNan => !self.each_single(|a, b| a >= b),
            SimpleOp::LessEqualOrNan => !self.each_single(|a, b| a > b),
            SimpleOp::GreaterOrNan => !self.each_single(|a, b| a <= b),
            SimpleOp::GreaterEqualOrNan => !self.each_single(|a, b| a < b),
            SimpleOp::NumbersSingle => self.each_single(|a, b| (a < b) | (a >= b)),
            SimpleOp::NanSingle => !self.each_single(|a, b| (a < b) | (a >= b)),
            _ => 0,
        }
    }
}
