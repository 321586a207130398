//! Workload M5: blocks of very different sizes in little memory, to measure fragmentation.

use super::allocator::Allocator;
use super::lcg::Lcg;

const LEAST_BYTES: u64 = 4 << 10;
const DOUBLINGS: u64 = 16;
/// Requests of this size and more take whole pages.
const LARGE_BYTES: u64 = 2 << 20;

/// Keeps nine tenths of a limit in use: each step draws a size between 4 KiB and 256 MiB, every magnitude as often as any
/// other, frees random blocks until it fits into nine tenths, and asks for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Filling {
    /// What the allocator may take.
    pub limit_bytes: u64,
    /// How many requests.
    pub steps: u64,
}

/// What came of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FillingResult {
    /// Requests.
    pub requests: u64,
    /// Requests of 2 MiB and more.
    pub large_requests: u64,
    /// Requests that were not met.
    pub refused: u64,
    /// Requests of 2 MiB and more that were not met, though a tenth of the limit and more was free.
    pub large_refused: u64,
    /// The most bytes that were live at once.
    pub peak_live_bytes: u64,
}

impl Default for Filling {
    fn default() -> Self {
        Self { limit_bytes: 16 << 30, steps: 200_000 }
    }
}

impl Filling {
    /// Runs it. What is left at the end is freed.
    ///
    /// # Errors
    /// Whatever the allocator says.
    pub fn run<A: Allocator>(&self, allocator: &mut A) -> Result<FillingResult, A::Error> {
        let mut random = Lcg::new(Lcg::SEED);
        let mut live: Vec<(A::Block, u64)> = Vec::new();
        let (mut live_bytes, mut filled) = (0, FillingResult::default());
        let most = self.limit_bytes / 10 * 9;
        for _ in 0..self.steps {
            let bytes = size(&mut random).min(most);
            while live_bytes + bytes > most && !live.is_empty() {
                let at = (random.draw() % live.len() as u64) as usize;
                let (block, freed) = live.swap_remove(at);
                allocator.free(block)?;
                live_bytes -= freed;
            }
            let is_large = bytes >= LARGE_BYTES;
            filled.requests += 1;
            filled.large_requests += u64::from(is_large);
            match allocator.allocate(bytes)? {
                Some(block) => {
                    live.push((block, bytes));
                    live_bytes += bytes;
                    filled.peak_live_bytes = filled.peak_live_bytes.max(live_bytes);
                }
                None => {
                    filled.refused += 1;
                    filled.large_refused += u64::from(is_large);
                }
            }
        }
        live.into_iter().try_for_each(|(block, _)| allocator.free(block))?;
        Ok(filled)
    }
}

/// A magnitude first, then a size of it.
fn size(random: &mut Lcg) -> u64 {
    let least = LEAST_BYTES << (random.draw() % DOUBLINGS);
    least + random.draw() % least
}
