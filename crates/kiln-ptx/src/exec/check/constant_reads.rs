//! Memory that the kernel reads as constant: through `ld.global.nc` and `ldu`.
//!
//! These loads may go through a cache that writes do not reach. So what they read must not be written in the whole launch, by any thread,
//! before or after, and no barrier or fence helps. For each word the first such read and the first write are remembered, each with
//! the bytes it touched.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::shadow_page::{PAGE_BYTES, PAGE_WORDS};
use crate::exec::warp_register::{Column, LANES};

/// Parts of the table of pages, each with a lock.
const SHARDS: usize = 64;

/// The accesses of a launch to memory that is read as constant.
pub(crate) struct ConstantReads {
    shards: Vec<Mutex<HashMap<u64, Box<Page>>>>,
}

/// An access of some lanes of a warp, which is given by its number in the grid.
#[derive(Clone, Copy)]
pub(crate) struct ConstantTouch {
    pub(crate) warp: u32,
    pub(crate) mask: u32,
    pub(crate) pc: u32,
    pub(crate) bytes: u32,
    pub(crate) writes: bool,
}

/// The earlier access of the other kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConstantConflict {
    /// The lane of the later one.
    pub(crate) lane: usize,
    pub(crate) earlier_warp: u32,
    pub(crate) earlier_lane: usize,
    pub(crate) pc: u32,
}

/// The first accesses to the words of a page, by kind: reads as a constant, writes.
type Page = [[Seen; 2]; PAGE_WORDS as usize];

/// The first access of a kind to a word.
#[derive(Clone, Copy, Default)]
struct Seen {
    pc: u32,
    warp: u32,
    lane: u8,
    /// A bit for each byte; none if there was no access.
    bytes: u8,
}

impl ConstantReads {
    pub(crate) fn new() -> Self {
        Self { shards: (0..SHARDS).map(|_| Mutex::default()).collect() }
    }

    /// Takes an access in; the first lane that touches what was accessed in the other way before.
    pub(crate) fn touch(&self, touch: &ConstantTouch, addresses: &Column) -> Option<ConstantConflict> {
        let mut found = None;
        let lanes = (0..LANES).filter(|lane| touch.mask >> lane & 1 != 0);
        for lane in lanes {
            let (mut at, end) = (addresses[lane], addresses[lane].saturating_add(u64::from(touch.bytes)));
            while at < end {
                let stop = (at / 4 * 4 + 4).min(end);
                let bytes = (((1u32 << (stop - at)) - 1) << (at % 4)) as u8;
                let raced = self.touch_word(touch, lane, at / 4, bytes);
                found = found.or(raced);
                at = stop;
            }
        }
        found
    }

    fn touch_word(
        &self,
        touch: &ConstantTouch,
        lane: usize,
        word: u64,
        bytes: u8,
    ) -> Option<ConstantConflict> {
        let number = word / PAGE_WORDS;
        let mut shard =
            self.shards.get(number as usize % SHARDS)?.lock().unwrap_or_else(PoisonError::into_inner);
        let page =
            shard.entry(number).or_insert_with(|| Box::new([[Seen::default(); 2]; PAGE_WORDS as usize]));
        let [read, written] = page.get_mut((word % PAGE_WORDS) as usize)?;
        let (own, other) = if touch.writes { (written, *read) } else { (read, *written) };
        if own.bytes == 0 {
            *own = Seen { pc: touch.pc, warp: touch.warp, lane: lane as u8, bytes };
        }
        own.bytes |= bytes;
        let Seen { pc, warp, lane: earlier_lane, .. } = other;
        (other.bytes & bytes != 0).then_some(ConstantConflict {
            lane,
            earlier_warp: warp,
            earlier_lane: usize::from(earlier_lane),
            pc,
        })
    }

    /// Forgets accesses to memory that is allocated again.
    pub(crate) fn forget(&self, start: u64, bytes: u64) {
        let pages = start / PAGE_BYTES..=start.saturating_add(bytes) / PAGE_BYTES;
        for number in pages {
            let Some(shard) = self.shards.get(number as usize % SHARDS) else { continue };
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(page) = shard.get_mut(&number) else { continue };
            for (word, seen) in (number * PAGE_WORDS..).zip(page.iter_mut()) {
                if word * 4 + 4 > start && word * 4 < start.saturating_add(bytes) {
                    *seen = [Seen::default(); 2];
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(pc: u32, writes: bool, bytes: u32) -> ConstantTouch {
        ConstantTouch { warp: 3, mask: 1, pc, bytes, writes }
    }

    #[test]
    fn a_write_meets_a_constant_read_in_either_order() {
        for first in [false, true] {
            let reads = ConstantReads::new();
            assert_eq!(reads.touch(&touch(7, first, 8), &[64; LANES]), None);
            assert_eq!(reads.touch(&touch(8, first, 8), &[64; LANES]), None, "of one kind");
            let found = reads.touch(&touch(9, !first, 4), &[68; LANES]);
            let wanted = ConstantConflict { lane: 0, earlier_warp: 3, earlier_lane: 0, pc: 7 };
            assert_eq!(found, Some(wanted));
        }
    }

    #[test]
    fn neighbouring_bytes_are_apart_and_freed_memory_is_forgotten() {
        let reads = ConstantReads::new();
        assert_eq!(reads.touch(&touch(1, false, 1), &[65; LANES]), None);
        assert_eq!(reads.touch(&touch(2, true, 1), &[66; LANES]), None);
        assert!(reads.touch(&touch(2, true, 2), &[64; LANES]).is_some());
        reads.forget(64, 4);
        assert_eq!(reads.touch(&touch(2, true, 2), &[64; LANES]), None);
    }
}
