//! WarpEpochs: a warp between two of its synchronisations, as one number that a mark can hold.
//!
//! Blocks run on several threads, so the table grows without moving: in chunks, each twice as large as the one before.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::vector_clock::Time;

/// WarpEpochs of the first chunk.
const FIRST: u64 = 1024;
const CHUNKS: usize = 22;

/// All epochs of a launch.
pub(crate) struct WarpEpochs {
    next: AtomicU64,
    chunks: [OnceLock<Box<[AtomicU64]>>; CHUNKS],
}

impl WarpEpochs {
    pub(crate) fn new() -> Self {
        Self { next: AtomicU64::new(1), chunks: [const { OnceLock::new() }; CHUNKS] }
    }

    /// A number for a warp at a time; `None` when there are no more.
    pub(crate) fn add(&self, warp: u32, time: Time) -> Option<u32> {
        let number = u32::try_from(self.next.fetch_add(1, Ordering::Relaxed)).ok()?;
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
        let numbers: Vec<u32> = (0..5000).map(|n| epochs.add(n, n * 3).unwrap()).collect();
        for (n, number) in (0..).zip(numbers) {
            assert_eq!(epochs.get(number), (n, n * 3));
        }
    }
}
