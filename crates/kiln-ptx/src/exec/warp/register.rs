//! A register of a frame, in the form its values were last computed in.
//!
//! What all steps can read is a column of 64-bit values. Steps that only compute, and accesses to memory in rows, also know columns of words, for values of
//! 32 bits at most, and patterns, of which no lane is written at all. A register is put into the form that a step needs when it needs it, so whatever runs
//! outside of that loop settles what it reads first, see [`Frame::settle`](super::frame::Frame::settle).

use crate::exec::alu::simple_op::Words;
use crate::exec::lane_pattern::LanePattern;
use crate::exec::warp_register::{Column, LANES};
use kiln_lanes::{first_words, first_words_mut};

/// What is known of the values of a register. At least one of the last three holds, and at most one of the last two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known(u8);

impl Known {
    /// All lanes hold one value; there is a pattern.
    pub(super) const UNIFORM: Self = Self(1);
    /// The pattern says the values.
    pub(super) const PATTERN: Self = Self(2);
    /// The column holds words, in its first half: the upper bits of all values are zero.
    pub(super) const WORDS: Self = Self(4);
    /// The column holds the values.
    pub(super) const LANES: Self = Self(8);

    #[inline(always)]
    pub(super) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// What is known of both.
    #[inline(always)]
    pub(super) fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    #[inline(always)]
    fn with_column(self, column: Self) -> Self {
        Self(self.0 & !(Self::WORDS.0 | Self::LANES.0) | column.0)
    }
}

/// A register.
pub(crate) struct Register {
    pub(super) known: Known,
    /// The pattern, if there is one.
    pub(super) pattern: LanePattern,
    pub(super) column: Box<Column>,
}

impl Register {
    pub(super) fn zero() -> Self {
        let mut register =
            Self { known: Known::LANES, pattern: LanePattern::uniform(0), column: Box::new([0; LANES]) };
        register.set_uniform(0);
        register
    }

    /// A constant, with a column of its low words.
    pub(crate) fn constant(value: u64) -> Self {
        let mut register = Self::zero();
        register.set_uniform(value);
        first_words_mut(&mut register.column).fill(value as u32);
        register.known = Known(register.known.0 | Known::WORDS.0);
        register
    }

    #[inline(always)]
    pub(super) fn set_uniform(&mut self, value: u64) {
        self.known = Known(Known::UNIFORM.0 | Known::PATTERN.0);
        self.pattern = LanePattern::uniform(value);
    }

    #[inline(always)]
    pub(super) fn set_pattern(&mut self, pattern: LanePattern) {
        self.known = Known(Known::PATTERN.0 | u8::from(pattern.is_uniform()));
        self.pattern = pattern;
    }

    /// Takes a column of words; the one that was there is given in exchange.
    #[inline(always)]
    pub(super) fn take_words(&mut self, result: &mut Box<Column>) {
        std::mem::swap(&mut self.column, result);
        self.known = Known::WORDS;
    }

    /// The same with a column of values.
    #[inline(always)]
    pub(super) fn take_lanes(&mut self, result: &mut Box<Column>) {
        std::mem::swap(&mut self.column, result);
        self.known = Known::LANES;
    }

    /// Whether these are its values.
    #[inline]
    pub(super) fn holds(&self, values: &Column) -> bool {
        if self.known.has(Known::LANES) {
            return *self.column == *values;
        }
        if self.known.has(Known::PATTERN) {
            return (0..LANES).all(|lane| self.pattern.lane(lane) == values[lane]);
        }
        self.words().iter().zip(values).all(|(word, value)| u64::from(*word) == *value)
    }

    /// Lets the column hold the values.
    #[inline(always)]
    pub(super) fn settle(&mut self) {
        if !self.known.has(Known::LANES) {
            self.fill();
        }
    }

    /// The same before some lanes are written: nothing else is known of the values then.
    #[inline(always)]
    pub(super) fn settle_to_write(&mut self) {
        self.settle();
        self.known = Known::LANES;
    }

    #[inline(never)]
    fn fill(&mut self) {
        if self.known.has(Known::WORDS) {
            let narrow: Words = *first_words(&self.column);
            self.column.iter_mut().zip(narrow).for_each(|(value, word)| *value = u64::from(word));
        } else {
            self.pattern.fill(&mut self.column);
        }
        self.known = self.known.with_column(Known::LANES);
    }

    /// Lets the column hold words; false if a value has more than 32 bits.
    #[inline(always)]
    pub(super) fn narrow(&mut self) -> bool {
        self.known.has(Known::WORDS) || self.make_words()
    }

    #[inline(never)]
    fn make_words(&mut self) -> bool {
        if self.known.has(Known::PATTERN) {
            let Some(narrow) = self.pattern.words() else { return false };
            *first_words_mut(&mut self.column) = narrow;
        } else {
            let mut narrow = [0; LANES];
            let mut upper = 0;
            for (word, value) in narrow.iter_mut().zip(self.column.iter()) {
                *word = *value as u32;
                upper |= value >> 32;
            }
            if upper != 0 {
                return false;
            }
            *first_words_mut(&mut self.column) = narrow;
        }
        self.known = self.known.with_column(Known::WORDS);
        true
    }

    /// The words, if the column holds them.
    #[inline(always)]
    pub(super) fn words(&self) -> &Words {
        debug_assert!(self.known.has(Known::WORDS));
        first_words(&self.column)
    }
}
