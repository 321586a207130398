//! Workloads M2 and M4: blocks of random sizes and random lifetimes.

use std::time::Duration;

use kiln_driver::Clock;

use super::allocator::Allocator;
use super::lcg::Lcg;

/// No more than this is live.
const LIVE_LIMIT_BYTES: u64 = 16_000 << 20;
/// In a hundred steps, so many allocate while they may.
const ALLOCATING_PERCENT: u64 = 73;

/// Twice `count` steps. Each draws a size up to `max_bytes`; it allocates if nothing is live, or with a chance of 73 %
/// while fewer than `count` were allocated and the live bytes stay under 16,000 MiB; otherwise it frees a random block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RandomLives {
    /// Blocks that are allocated at most, and half of the steps.
    pub count: usize,
    /// The largest size.
    pub max_bytes: u64,
}

/// What came of it.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct RandomLivesResult {
    /// Allocations and frees.
    pub operations: u64,
    /// Nanoseconds for each of them.
    pub nanoseconds: f64,
    /// The time they took together.
    pub time: Duration,
    /// The most bytes that were live at once.
    pub peak_live_bytes: u64,
    /// Requests that were not met.
    pub refused: u64,
}

impl RandomLives {
    /// The sizes of the table of figures.
    pub const MAX_BYTES: [u64; 5] = [1 << 20, 4 << 20, 64 << 20, 256 << 20, 1 << 30];
    /// ... and the counts.
    pub const COUNTS: [usize; 3] = [1_000, 10_000, 100_000];

    /// Runs it from the seed of all workloads, so that every run asks for the same. What is left at the end is freed,
    /// untimed.
    ///
    /// # Errors
    /// Whatever the allocator says.
    pub fn run<A: Allocator>(
        &self,
        allocator: &mut A,
        clock: &dyn Clock,
    ) -> Result<RandomLivesResult, A::Error> {
        self.run_from(Lcg::SEED, allocator, clock)
    }

    /// Runs it from a seed: a program that never repeats itself is one that has another seed in every run.
    ///
    /// # Errors
    /// Whatever the allocator says.
    pub fn run_from<A: Allocator>(
        &self,
        seed: u64,
        allocator: &mut A,
        clock: &dyn Clock,
    ) -> Result<RandomLivesResult, A::Error> {
        let mut random = Lcg::new(seed);
        let mut live: Vec<(A::Block, u64)> = Vec::with_capacity(self.count);
        let (mut live_bytes, mut allocated) = (0, 0);
        let mut lived = RandomLivesResult::default();
        let start = clock.now();
        for _ in 0..2 * self.count {
            let bytes = 1 + random.draw() % self.max_bytes.max(1);
            let allocates = live.is_empty()
                || (random.draw() % 100 < ALLOCATING_PERCENT
                    && allocated < self.count
                    && live_bytes + bytes < LIVE_LIMIT_BYTES);
            lived.operations += 1;
            if allocates {
                match allocator.allocate(bytes)? {
                    Some(block) => {
                        live.push((block, bytes));
                        live_bytes += bytes;
                        lived.peak_live_bytes = lived.peak_live_bytes.max(live_bytes);
                    }
                    None => lived.refused += 1,
                }
                allocated += 1;
            } else {
                let at = (random.draw() % live.len() as u64) as usize;
                let (block, bytes) = live.swap_remove(at);
                allocator.free(block)?;
                live_bytes -= bytes;
            }
        }
        lived.time = clock.now() - start;
        lived.nanoseconds = lived.time.as_nanos() as f64 / lived.operations.max(1) as f64;
        live.into_iter().try_for_each(|(block, _)| allocator.free(block))?;
        Ok(lived)
    }
}
