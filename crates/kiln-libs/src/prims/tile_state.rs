//! Device memory in which the tiles of one launch publish their values to later tiles (see `tile.cuh`).

use kiln_runtime::GpuRef;

use super::plan::Plan;
use crate::Result;

/// Tiles of a launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Tiles {
    /// How many.
    pub(super) count: u64,
    /// Words of 64 bits for a value: each holds 32 bits of it.
    words: u64,
}

impl Tiles {
    /// Tiles that exchange values of so many bytes.
    pub(super) const fn new(count: u64, value_bytes: u64) -> Self {
        Self { count, words: value_bytes / 4 }
    }

    /// A counter, a value for each tile, for each group of 32 tiles and for each set of 32 groups, with one more of both.
    pub(super) const fn state_words(self) -> u64 {
        1 + (self.count + self.count / 32 + 1 + self.count / 1024 + 1) * self.words
    }

    /// The memory, set to zeros.
    pub(super) fn state(self, plan: &mut Plan<'_>) -> Result<GpuRef<u64>> {
        let state = plan.scratch(self.state_words())?;
        plan.zero(&state)?;
        Ok(state)
    }
}

#[cfg(test)]
mod tests {
    use super::Tiles;

    #[test]
    fn every_value_a_tile_publishes_has_a_place() {
        for count in [1_u64, 31, 32, 33, 1023, 1024, 1025, 32_768, 40_000] {
            let (groups, sets) = (count / 32 + 1, count / 1024 + 1);
            for value_bytes in [4, 8] {
                let words = value_bytes / 4;
                // The last tile of a set writes the value of the next set.
                let last_set = if count >= 1024 { count / 1024 } else { 0 };
                let end = 1 + (count + groups + last_set + 1) * words;
                assert!(last_set < sets && end <= Tiles::new(count, value_bytes).state_words(), "{count}");
            }
        }
    }
}
