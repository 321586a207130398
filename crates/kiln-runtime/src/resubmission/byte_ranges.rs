//! Ranges of bytes. Knows no device.

use std::collections::BTreeMap;
use std::ops::Range;

/// A set of bytes of one block.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct ByteRanges {
    /// The end of each span, by its start; they neither overlap nor touch.
    ends: BTreeMap<u64, u64>,
}

impl ByteRanges {
    /// Adds bytes.
    pub(super) fn insert(&mut self, range: &Range<u64>) {
        if range.is_empty() {
            return;
        }
        let (mut start, mut end) = (range.start, range.end);
        while let Some((at, until)) = self.last_from(end).filter(|(_, until)| *until >= start) {
            (start, end) = (start.min(at), end.max(until));
            self.ends.remove(&at);
        }
        self.ends.insert(start, end);
    }

    /// Takes bytes out.
    pub(super) fn remove(&mut self, range: &Range<u64>) {
        if range.is_empty() {
            return;
        }
        while let Some((at, until)) = self.last_from(range.end - 1).filter(|(_, until)| *until > range.start)
        {
            self.ends.remove(&at);
            if until > range.end {
                self.ends.insert(range.end, until);
            }
            if at < range.start {
                self.ends.insert(at, range.start);
            }
        }
    }

    /// Whether one of these bytes is in the set.
    pub(super) fn intersects(&self, range: &Range<u64>) -> bool {
        !range.is_empty() && self.last_from(range.end - 1).is_some_and(|(_, until)| until > range.start)
    }

    /// The last span that begins no later than a place.
    fn last_from(&self, at: u64) -> Option<(u64, u64)> {
        self.ends.range(..=at).next_back().map(|(start, end)| (*start, *end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against one flag for each byte.
    #[test]
    fn spans_are_what_flags_for_each_byte_say() {
        const BYTES: u64 = 40;
        let (mut spans, mut flags) = (ByteRanges::default(), [false; BYTES as usize]);
        let mut state = 1_u64;
        let turns = if cfg!(miri) { 100 } else { 20_000 };
        for _ in 0..turns {
            let mut roll = |sides: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 33) % sides
            };
            let start = roll(BYTES);
            let range = start..start + roll(BYTES - start + 1);
            let insert = roll(2) == 0;
            if insert {
                spans.insert(&range)
            } else {
                spans.remove(&range)
            }
            flags[range.start as usize..range.end as usize].fill(insert);
            for (byte, flag) in (0..).zip(flags) {
                assert_eq!(spans.intersects(&(byte..byte + 1)), flag, "byte {byte} after {range:?}");
            }
            let probe = roll(BYTES)..BYTES;
            assert_eq!(spans.intersects(&probe), flags[probe.start as usize..].contains(&true));
        }
    }
}
