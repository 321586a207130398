//! Values of a whole warp that follow a simple pattern: by halves of the warp, each lane so much further than the one before.
//!
//! Indices and addresses are of this kind mostly: the number of the thread, scaled and moved by values that all lanes share. Arithmetic on them is arithmetic
//! on three numbers instead of 32 lanes, and what a pattern says of addresses need not be found by comparing them.
//!
//! A pattern says the whole value of each lane, upper bits included: sums that would wrap at 32 bits in some lanes only have none.

use super::address_halves::{HALF, HIGHEST, Half, Halves};
use super::alu::SimpleOp;
use super::warp_register::{Column, FULL, LANES};

/// The lanes of the first half of a warp.
const FIRST_HALF: u32 = (1 << HALF) - 1;

/// Lane `i` of half `h` holds `starts[h] + i * step`, modulo 2^64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LanePattern {
    pub(crate) starts: [u64; 2],
    pub(crate) step: u64,
}

impl LanePattern {
    /// One value in all lanes.
    #[inline(always)]
    pub(crate) fn uniform(value: u64) -> Self {
        Self { starts: [value; 2], step: 0 }
    }

    /// The pattern of a column, if it has one.
    pub(crate) fn of(column: &Column) -> Option<Self> {
        let (starts, step) = ([column[0], column[HALF]], column[1].wrapping_sub(column[0]));
        let found = Self { starts, step };
        (0..LANES).all(|lane| found.lane(lane) == column[lane]).then_some(found)
    }

    #[inline(always)]
    pub(crate) fn is_uniform(self) -> bool {
        self.step == 0 && self.starts[0] == self.starts[1]
    }

    /// The value of a lane.
    #[inline(always)]
    pub(crate) fn lane(self, lane: usize) -> u64 {
        self.starts[(lane / HALF) & 1].wrapping_add(self.step.wrapping_mul((lane % HALF) as u64))
    }

    #[inline(always)]
    pub(crate) fn fill(self, column: &mut Column) {
        for (half, start) in column.chunks_exact_mut(HALF).zip(self.starts) {
            let mut next = start;
            for value in half {
                *value = next;
                next = next.wrapping_add(self.step);
            }
        }
    }

    /// The values as words; `None` if they have more bits.
    #[inline(always)]
    pub(crate) fn words(self) -> Option<[u32; LANES]> {
        if !self.is_words() {
            return None;
        }
        let mut words = [0; LANES];
        for (half, start) in words.chunks_exact_mut(HALF).zip(self.starts) {
            for (lane, word) in (0u32..).zip(half) {
                *word = (start as u32).wrapping_add((self.step as u32).wrapping_mul(lane));
            }
        }
        Some(words)
    }

    /// The same moved.
    #[inline(always)]
    pub(crate) fn plus(self, offset: u64) -> Self {
        Self { starts: self.starts.map(|start| start.wrapping_add(offset)), step: self.step }
    }

    /// As addresses of elements of `bytes`: rows or places.
    #[inline(always)]
    pub(crate) fn halves(self, bytes: u32) -> Option<Halves> {
        if self.starts[0] > HIGHEST || self.starts[1] > HIGHEST {
            return None;
        }
        let halves = match self.step {
            0 => self.starts.map(Half::Place),
            step if step == u64::from(bytes) => self.starts.map(Half::Row),
            _ => return None,
        };
        Some(Halves { halves, bytes })
    }

    #[inline(always)]
    fn last(self, start: u64) -> u64 {
        start.wrapping_add(self.step.wrapping_mul(HALF as u64 - 1))
    }

    /// Whether every value has 32 bits at most.
    #[inline(always)]
    fn is_words(self) -> bool {
        let [first, second] = self.starts;
        // A larger step could come back to 32 bits at the end of a half, and have more in between.
        let is_small = self.step.wrapping_add(1 << 32) >> 33 == 0;
        is_small && (first | second | self.last(first) | self.last(second)) >> 32 == 0
    }

    /// The low 32 bits of every value, unless some of them wrap.
    #[inline(always)]
    fn cut(self) -> Option<Self> {
        let starts = self.starts.map(|start| start & 0xffff_ffff);
        let cut = Self { starts, step: self.step as i32 as u64 };
        cut.is_words().then_some(cut)
    }

    /// The values of 32 bits with their sign, unless it changes within a half.
    #[inline(always)]
    fn signed(self) -> Option<Self> {
        let is_one_sign = |start: u64| (start ^ self.last(start)) >> 31 == 0;
        let is_signed = self.is_words() && self.starts.iter().all(|start| is_one_sign(*start));
        is_signed.then(|| Self { starts: self.starts.map(|start| start as i32 as u64), step: self.step })
    }

    #[inline(always)]
    fn sum(self, other: Self) -> Self {
        let starts = [0, 1].map(|half: usize| self.starts[half].wrapping_add(other.starts[half]));
        Self { starts, step: self.step.wrapping_add(other.step) }
    }

    #[inline(always)]
    fn difference(self, other: Self) -> Self {
        let starts = [0, 1].map(|half: usize| self.starts[half].wrapping_sub(other.starts[half]));
        Self { starts, step: self.step.wrapping_sub(other.step) }
    }

    /// The product, if it is a pattern: one of both is one value, or neither changes within a half.
    #[inline(always)]
    fn product(self, other: Self) -> Option<Self> {
        let step = match (self.is_uniform(), other.is_uniform()) {
            (_, true) => self.step.wrapping_mul(other.starts[0]),
            (true, _) => other.step.wrapping_mul(self.starts[0]),
            _ if self.step == 0 && other.step == 0 => 0,
            _ => return None,
        };
        let starts = [0, 1].map(|half: usize| self.starts[half].wrapping_mul(other.starts[half]));
        Some(Self { starts, step })
    }

    /// What an operation makes of operands with a pattern, if that has one too.
    #[inline(always)]
    pub(crate) fn computed(op: SimpleOp, a: Self, b: Self, c: Self) -> Option<Self> {
        match op {
            SimpleOp::Add32 => a.sum(b).cut(),
            SimpleOp::Subtract32 => a.difference(b).cut(),
            SimpleOp::MultiplyAdd32 => a.product(b)?.sum(c).cut(),
            SimpleOp::ShiftLeft32 if b.is_uniform() && b.starts[0] as u32 <= 31 => {
                a.product(Self::uniform(1 << (b.starts[0] & 31)))?.cut()
            }
            SimpleOp::Add64 => Some(a.sum(b)),
            SimpleOp::Subtract64 => Some(a.difference(b)),
            SimpleOp::MultiplyAdd64 => Some(a.product(b)?.sum(c)),
            SimpleOp::ShiftLeft64 if b.is_uniform() && b.starts[0] as u32 <= 63 => {
                a.product(Self::uniform(1 << (b.starts[0] & 63)))
            }
            SimpleOp::MultiplyWideUnsigned if a.is_words() && b.is_words() => Some(a.product(b)?.sum(c)),
            SimpleOp::MultiplyWideSigned => Some(a.signed()?.product(b.signed()?)?.sum(c)),
            SimpleOp::WidenUnsigned => a.is_words().then_some(a),
            SimpleOp::WidenSigned => a.signed(),
            SimpleOp::Cut32 => a.cut(),
            _ => None,
        }
    }

    /// The lanes for which a comparison of 32-bit numbers holds, if all of each half agree.
    #[inline(always)]
    pub(crate) fn compared(op: SimpleOp, a: Self, b: Self) -> Option<u32> {
        let (a, b) = match op.is_signed() {
            _ if op.compares_singles() => return None,
            true => (a.signed()?, b.signed()?),
            false if a.is_words() && b.is_words() => (a, b),
            false => return None,
        };
        if matches!(op, SimpleOp::Equal32 | SimpleOp::Unequal32) && a.step != b.step {
            return None;
        }
        // The difference rises or falls evenly, so what holds at both ends of a half holds in between.
        let holds = |a: u64, b: u64| op.holds(a as i64, b as i64);
        let mut lanes = 0;
        for (half, (x, y)) in [FIRST_HALF, !FIRST_HALF].into_iter().zip(a.starts.into_iter().zip(b.starts)) {
            let [first, last] = [holds(x, y), holds(a.last(x), b.last(y))];
            if first != last {
                return None;
            }
            lanes |= if first { half } else { 0 };
        }
        Some(lanes & FULL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an operation makes of one lane, from the PTX manual.
    fn expected(op: SimpleOp, a: u64, b: u64, c: u64) -> u64 {
        let word = |value: u64| u64::from(value as u32);
        match op {
            SimpleOp::Add32 => word(a.wrapping_add(b)),
            SimpleOp::Subtract32 => word(a.wrapping_sub(b)),
            SimpleOp::MultiplyAdd32 => word(a.wrapping_mul(b).wrapping_add(c)),
            SimpleOp::ShiftLeft32 => word(if b as u32 > 31 { 0 } else { a << b }),
            SimpleOp::Add64 => a.wrapping_add(b),
            SimpleOp::Subtract64 => a.wrapping_sub(b),
            SimpleOp::MultiplyAdd64 => a.wrapping_mul(b).wrapping_add(c),
            SimpleOp::ShiftLeft64 => {
                if b as u32 > 63 {
                    0
                } else {
                    a << b
                }
            }
            SimpleOp::MultiplyWideUnsigned => word(a).wrapping_mul(word(b)).wrapping_add(c),
            SimpleOp::MultiplyWideSigned => {
                (i64::from(a as i32) * i64::from(b as i32)).wrapping_add(c as i64) as u64
            }
            SimpleOp::WidenUnsigned | SimpleOp::Cut32 => word(a),
            _ => a as i32 as u64,
        }
    }

    #[test]
    fn a_pattern_is_what_its_lanes_are() {
        let mut state = 5u64;
        let mut next = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 20
        };
        let edges = [0, 1, 4, 15, 31, 64, 0x7fff_fff8, 0x8000_0000, 0xffff_fff0, 0xffff_ffff];
        let mut value = move || {
            let edge = edges[next() as usize % edges.len()];
            if next() % 2 == 0 { edge } else { next() & 0xffff_ffff }
        };
        let mut pattern = || match value() % 3 {
            0 => LanePattern::uniform(value()),
            1 => LanePattern { starts: [value(), value()], step: value() as i32 as u64 },
            _ => LanePattern { starts: [value(), value()], step: [0, 1, 4, 8][value() as usize % 4] },
        };
        let mut found = 0;
        for round in 0..200_000 {
            let op = SimpleOp::ALL[round % SimpleOp::ALL.len()];
            let (a, b, c) = (pattern(), pattern(), pattern());
            if let Some(lanes) = op.is_comparison().then(|| LanePattern::compared(op, a, b)).flatten() {
                for lane in 0..LANES {
                    let (x, y) = (a.lane(lane), b.lane(lane));
                    let (x, y) = if op.is_signed() {
                        (x as i32 as i64, y as i32 as i64)
                    } else {
                        (x as i64, y as i64)
                    };
                    assert_eq!(lanes >> lane & 1 != 0, op.holds(x, y), "{op:?} {a:?} {b:?}");
                }
                found += 1;
            } else if let Some(out) = LanePattern::computed(op, a, b, c) {
                let lanes: Column = std::array::from_fn(|lane| out.lane(lane));
                for (lane, found) in lanes.iter().enumerate() {
                    let expected = expected(op, a.lane(lane), b.lane(lane), c.lane(lane));
                    assert_eq!(*found, expected, "{op:?} {a:?} {b:?} {c:?} lane {lane}");
                }
                assert!(LanePattern::of(&lanes).is_some());
                if let Some(words) = out.words() {
                    assert!(words.iter().zip(lanes).all(|(word, lane)| u64::from(*word) == lane));
                }
                let mut filled = [0; LANES];
                out.fill(&mut filled);
                assert_eq!(filled, lanes);
                found += 1;
            }
        }
        assert!(found > 20_000, "{found}");
    }
}
