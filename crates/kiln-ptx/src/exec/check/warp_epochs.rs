//! WarpEpochs: a warp between two of its synchronisations, as one number that a mark can hold.
//!
//! Blocks run on several threads, so the table grows without moving: in chunks, each twice as large as the one before. A block takes several numbers at once,
//! so that threads rarely write the same lines of memory.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::vector_clock::Time;
use crate::exec::own_line::OwnLine;

/// WarpEpochs of the first chunk.
const FIRST: u64 = 1024;
const CHUNKS: usize = 22;
/// How many numbers a block takes at once: first, and at most. It may not need them.
const FEWEST: u32 = 8;
const MOST: u32 = 64;

/// All epochs of a launch.
pub(crate) struct WarpEpochs {
    next: OwnLine<AtomicU64>,
    chunks: [OnceLock<Box<[AtomicU64]>>; CHUNKS],
}

impl WarpEpochs {
    pub(crate) fn new() -> Self {
        Self {
            next: OwnLine::new(AtomicU64::new(u64::from(MOST))),
            chunks: [const { OnceLock::new() }; CHUNKS],
        }
    }

    /// A number for a warp at a time, one of those that its block took; `None` when there are no more.
    pub(crate) fn add(&self, taken: &mut EpochNumbers, warp: u32, time: Time) -> Option<u32> {
        if taken.left == 0 {
            let count = (2 * taken.count).clamp(FEWEST, MOST);
            let end = self.next.fetch_add(u64::from(count), Ordering::Relaxed) + u64::from(count);
            *taken = EpochNumbers { end: u32::try_from(end).ok()?, left: count, count };
        }
        let number = taken.end - taken.left;
        taken.left -= 1;
        let (chunk, at) = place(number);
        let size = FIRST << chunk;
        let cells = self.chunks.get(chunk)?.get_or_init(|| (0..size).map(|_| AtomicU64::new(0)).collect());
        cells.get(at)?.store(u64::from(warp) << 32 | u64::from(time), Ordering::Release);
        Some(number)
    }

    /// The warp and the time.
    #[inline]
    pub(crate) fn get(&self, number: u32) -> (u32, Time) {
        let (chunk, at) = place(number);
        let cell = self.chunks.get(chunk).and_then(OnceLock::get).and_then(|cells| cells.get(at));
        let bits = cell.map_or(0, |cell| cell.load(Ordering::Acquire));
        ((bits >> 32) as u32, bits as Time)
    }
}

/// The numbers a block has taken for its epochs and not used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EpochNumbers {
    end: u32,
    left: u32,
    /// How many it took the last time.
    count: u32,
}

/// Chunk and place in it.
#[inline(always)]
fn place(number: u32) -> (usize, usize) {
    let shifted = u64::from(number) + FIRST;
    let chunk = shifted.ilog2() - FIRST.ilog2();
    (chunk as usize, (shifted - (FIRST << chunk)) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_keeps_its_warp_and_time() {
        let epochs = WarpEpochs::new();
        let mut blocks = [EpochNumbers::default(); 3];
        let numbers: Vec<u32> =
            (0..5000).map(|n| epochs.add(&mut blocks[n as usize % 3], n, n * 3).unwrap()).collect();
        for (n, number) in (0..).zip(&numbers) {
            assert_eq!(epochs.get(*number), (n, n * 3));
        }
        assert!(!numbers.contains(&0), "zero is no number");
    }
}
