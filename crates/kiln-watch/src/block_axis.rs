//! The addresses of a device's memory on one axis: ranges that were used, without the wide gaps between them.

use std::collections::BTreeMap;

use serde::Serialize;

/// Ranges nearer to each other than this are one, at first.
const FIRST_SLACK: u64 = 1 << 20;
/// Ranges that are told apart.
const MAX_RANGES: usize = 2048;
/// Ranges of a picture.
const MAX_SHOWN: usize = 24;
/// A gap is left out of a picture if it is wider than this, and than a part of what is used.
const WIDE_GAP: u64 = 64 << 20;

/// The addresses that were ever used, joined where they are near to each other.
#[derive(Clone, Debug)]
pub(crate) struct UsedAddresses {
    slack: u64,
    /// By beginning: the end.
    ranges: BTreeMap<u64, u64>,
}

/// A range of addresses on the axis of a picture.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct AddressRange {
    /// The first address, in hexadecimal digits.
    pub address: String,
    /// Where it is on the axis.
    pub position: u64,
    /// How many bytes it has.
    pub bytes: u64,
    #[serde(skip)]
    pub(crate) begin: u64,
}

/// The axis of a picture.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct AddressAxis {
    pub(crate) ranges: Vec<AddressRange>,
    /// How long it is.
    pub(crate) bytes: u64,
}

impl Default for UsedAddresses {
    fn default() -> Self {
        Self { slack: FIRST_SLACK, ranges: BTreeMap::new() }
    }
}

impl UsedAddresses {
    /// A block is at these addresses.
    pub(crate) fn add(&mut self, begin: u64, bytes: u64) {
        let (mut begin, mut end) = (begin, begin.saturating_add(bytes.max(1)));
        // All ranges that it touches become one with it.
        while let Some((&from, &to)) = self.ranges.range(..=end.saturating_add(self.slack)).next_back() {
            if to.saturating_add(self.slack) < begin {
                break;
            }
            if from <= begin && to >= end {
                return;
            }
            (begin, end) = (begin.min(from), end.max(to));
            self.ranges.remove(&from);
        }
        self.ranges.insert(begin, end);
        while self.ranges.len() > MAX_RANGES {
            self.slack = self.slack.saturating_mul(2);
            let known = std::mem::take(&mut self.ranges);
            self.ranges = joined(known.into_iter(), self.slack).into_iter().collect();
        }
    }

    /// The axis on which they are shown: wide gaps are left out.
    pub(crate) fn axis(&self) -> AddressAxis {
        let used: u64 = self.ranges.iter().fold(0, |sum: u64, (begin, end)| sum.saturating_add(end - begin));
        let mut gap = WIDE_GAP.max(used / 4);
        let mut shown = joined(self.ranges.iter().map(|(begin, end)| (*begin, *end)), gap);
        while shown.len() > MAX_SHOWN {
            gap = gap.saturating_mul(4);
            shown = joined(shown.into_iter(), gap);
        }
        let mut axis = AddressAxis::default();
        for (begin, end) in shown {
            let (address, position, bytes) = (format!("{begin:#x}"), axis.bytes, end - begin);
            axis.ranges.push(AddressRange { address, position, bytes, begin });
            axis.bytes = axis.bytes.saturating_add(bytes);
        }
        axis
    }
}

impl AddressAxis {
    /// Where an address is; none if it is not on the axis.
    pub(crate) fn position(&self, address: u64) -> Option<u64> {
        let at = self.ranges.partition_point(|range| range.begin <= address).checked_sub(1)?;
        let range = self.ranges.get(at)?;
        let inside = address - range.begin;
        (inside < range.bytes).then(|| range.position.saturating_add(inside))
    }
}

/// Ranges that are nearer to each other than a gap, as one.
fn joined(ranges: impl Iterator<Item = (u64, u64)>, gap: u64) -> Vec<(u64, u64)> {
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (begin, end) in ranges {
        match joined.last_mut() {
            Some((_, last)) if last.saturating_add(gap) >= begin => *last = end.max(*last),
            _ => joined.push((begin, end)),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_ranges_are_one_and_wide_gaps_are_left_out() {
        let mut used = UsedAddresses::default();
        for (begin, bytes) in
            [(0x1000_0000, 4096), (0x1000_4000, 4096), (0x7f00_0000_0000, 1 << 20), (0x1000_1000, 10)]
        {
            used.add(begin, bytes);
        }
        let axis = used.axis();
        assert_eq!(axis.ranges.len(), 2);
        assert_eq!(axis.bytes, 0x5000 + (1 << 20));
        assert_eq!(axis.position(0x1000_4000), Some(0x4000));
        assert_eq!(axis.position(0x7f00_0000_0010), Some(0x5010));
        assert_eq!(
            (axis.position(0xfff_ffff), axis.position(0x2000_0000), axis.position(u64::MAX)),
            (None, None, None)
        );
    }

    #[test]
    fn however_many_ranges_there_are_few_are_kept() {
        let mut used = UsedAddresses::default();
        (0..100_000_u64).for_each(|block| used.add((block * 7919 % 100_000) << 24, 4096));
        assert!(used.ranges.len() <= MAX_RANGES);
        let axis = used.axis();
        assert!(axis.ranges.len() <= MAX_SHOWN);
        assert!((0..100_000_u64).all(|block| axis.position(block << 24).is_some()));
    }
}
