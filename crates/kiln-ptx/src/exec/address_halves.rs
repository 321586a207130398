//! Addresses of a whole warp that follow a simple pattern.
//!
//! Most accesses are of this kind: neighbouring lanes reach neighbouring elements, or all reach one. Kernels with tiles of 16 do so by halves of a warp, so a
//! half is what a pattern is about. What is known of a half is checked, loaded and remembered at once.

use kiln_lanes::{InstructionSet, LaneLoop};

use super::warp_register::{Column, FULL, LANES};

/// Lanes of half a warp.
pub(crate) const HALF: usize = LANES / 2;

/// No address of a pattern is so high that its end could overflow.
pub(crate) const HIGHEST: u64 = u64::MAX / 2;

/// Where the lanes of half a warp are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Half {
    /// At neighbouring elements from this address on.
    Row(u64),
    /// All at this address.
    Place(u64),
}

/// The addresses of all lanes of a warp, by halves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Halves {
    pub(crate) halves: [Half; 2],
    /// Bytes of an element.
    pub(crate) bytes: u32,
}

impl Halves {
    /// The pattern of the addresses of elements of `bytes`, if they have one and all lanes take part.
    #[inline]
    pub(crate) fn of(set: InstructionSet, addresses: &Column, mask: u32, bytes: u32) -> Option<Self> {
        if mask != FULL || !matches!(bytes, 4 | 8) {
            return None;
        }
        let steps =
            [addresses[1].wrapping_sub(addresses[0]), addresses[HALF + 1].wrapping_sub(addresses[HALF])];
        if steps.iter().any(|step| *step != 0 && *step != u64::from(bytes)) {
            return None;
        }
        if !set.run(Follows { addresses, steps }) || addresses[0] > HIGHEST || addresses[HALF] > HIGHEST {
            return None;
        }
        let half = |at: usize| {
            if steps[at] == 0 { Half::Place(addresses[at * HALF]) } else { Half::Row(addresses[at * HALF]) }
        };
        Some(Self { halves: [half(0), half(1)], bytes })
    }

    /// The lowest address, and the end of the highest element.
    #[inline(always)]
    pub(crate) fn extent(&self) -> (u64, u64) {
        let [first, second] = self.halves.map(|half| half.extent(self.bytes));
        (first.0.min(second.0), first.1.max(second.1))
    }

    /// Where the two halves start, if both are rows.
    #[inline(always)]
    pub(crate) fn rows(&self) -> Option<[u64; 2]> {
        match self.halves {
            [Half::Row(first), Half::Row(second)] => Some([first, second]),
            _ => None,
        }
    }
}

impl Half {
    #[inline(always)]
    pub(crate) fn start(self) -> u64 {
        match self {
            Self::Row(start) | Self::Place(start) => start,
        }
    }

    #[inline(always)]
    fn extent(self, bytes: u32) -> (u64, u64) {
        match self {
            Self::Row(start) => (start, start + HALF as u64 * u64::from(bytes)),
            Self::Place(start) => (start, start + u64::from(bytes)),
        }
    }
}

/// Whether each half rises by its step.
struct Follows<'a> {
    addresses: &'a Column,
    steps: [u64; 2],
}

impl LaneLoop for Follows<'_> {
    type Output = bool;

    #[inline(always)]
    fn run<const FUSED: bool>(self) -> bool {
        let mut differs = 0;
        for (half, step) in self.addresses.chunks_exact(HALF).zip(self.steps) {
            // A step of an element is a shift, which every instruction set has for vectors.
            let (start, shift) = (half[0], if step == 8 { 3 } else { 2 });
            let kept = if step == 0 { 0 } else { u64::MAX };
            for (lane, address) in half.iter().enumerate() {
                differs |= address ^ start.wrapping_add((lane as u64) << shift & kept);
            }
        }
        differs == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(addresses: &Column) -> Option<[Half; 2]> {
        let found = [InstructionSet::PORTABLE, InstructionSet::detected()]
            .map(|set| Halves::of(set, addresses, FULL, 4));
        assert_eq!(found[0], found[1]);
        found[0].map(|found| found.halves)
    }

    #[test]
    fn rows_and_places_are_seen() {
        let row: Column = std::array::from_fn(|lane| 256 + 4 * lane as u64);
        assert_eq!(of(&row), Some([Half::Row(256), Half::Row(320)]));
        let tile: Column = std::array::from_fn(|lane| 64 + 4 * (lane % 16) as u64);
        assert_eq!(of(&tile), Some([Half::Row(64), Half::Row(64)]));
        let places: Column = std::array::from_fn(|lane| 8 * (lane / 16) as u64);
        assert_eq!(of(&places), Some([Half::Place(0), Half::Place(8)]));
        let wide: Column = std::array::from_fn(|lane| 8 * lane as u64);
        assert_eq!(Halves::of(InstructionSet::detected(), &wide, FULL, 8).unwrap().extent(), (0, 256));
    }

    #[test]
    fn one_lane_elsewhere_is_no_pattern() {
        for lane in 0..LANES {
            let mut row: Column = std::array::from_fn(|lane| 4 * lane as u64);
            row[lane] += 4;
            assert_eq!(of(&row), None, "lane {lane}");
        }
        assert_eq!(Halves::of(InstructionSet::PORTABLE, &[0; LANES], 1, 4), None);
        assert_eq!(of(&[u64::MAX - 3; LANES]), None);
    }
}
