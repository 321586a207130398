//! Values of collectives as a whole, which may be larger than what memory the process can have: that is an error of the call and does not end the process.

use std::ops::Range;

use kiln_runtime::internal::reserve;

use super::Bridge;
use crate::error::Result;

impl Bridge {
    /// Makes room for bytes of other ranks, which may be more than this process can have.
    pub(super) fn reserve(&self, bytes: &mut Vec<u8>, more: usize) -> Result<()> {
        let reserved = reserve(bytes, more, "what other ranks bring to a collective");
        reserved.map_err(|source| self.failed(source))
    }

    /// Bytes one after the other.
    pub(super) fn joined(&self, blocks: &[&[u8]]) -> Result<Vec<u8>> {
        let mut all = Vec::new();
        self.reserve(&mut all, blocks.iter().map(|block| block.len()).sum())?;
        blocks.iter().for_each(|block| all.extend_from_slice(block));
        Ok(all)
    }
}

/// A part of some bytes and more bytes behind them.
pub(super) fn part_of<'b>(head: &'b [u8], bytes: &'b [u8], part: Range<usize>) -> [&'b [u8]; 2] {
    let clipped = |of: &'b [u8], start: usize| {
        let place = |at: usize| at.saturating_sub(start).min(of.len());
        of.get(place(part.start)..place(part.end)).unwrap_or_default()
    };
    [clipped(head, 0), clipped(bytes, head.len())]
}

#[cfg(test)]
mod tests {
    use super::part_of;

    #[test]
    fn parts_of_two_are_parts_of_both_together() {
        let (head, bytes) = ([1, 2, 3], [4, 5, 6, 7, 8]);
        let whole = [&head[..], &bytes].concat();
        for size in 1..10 {
            let parts = (0..8_usize.div_ceil(size)).map(|at| at * size..(at + 1) * size);
            let found: Vec<u8> = parts.flat_map(|part| part_of(&head, &bytes, part).concat()).collect();
            assert_eq!(found, whole, "{size}");
        }
    }
}
