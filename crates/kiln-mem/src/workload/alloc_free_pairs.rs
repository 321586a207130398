//! Workloads M1 and M3: allocates and frees the same block repeatedly.

use std::sync::{Barrier, Mutex, PoisonError};
use std::time::Duration;

use kiln_driver::Clock;

use super::allocator::Allocator;
use super::percentiles::Percentiles;

/// Bytes of the block.
pub const PAIR_BYTES: u64 = 64 << 10;
/// Pairs that are timed together for the median: one is shorter than looking at a clock takes.
const BATCH: u32 = 256;
const BATCHES: usize = 1000;
/// Pairs that are timed one by one for the 99th percentile.
const SINGLES: usize = 50_000;
const WARM_UP: usize = 1000;

/// Nanoseconds for allocating and freeing 64 KiB, warm.
///
/// The median is over batches. The 99th percentile is over single pairs, less what looking at the clock takes; both are
/// the medians of so many repeats.
///
/// # Errors
/// Whatever the allocator says.
pub fn time_pairs<A: Allocator>(
    allocator: &mut A,
    repeats: usize,
    clock: &dyn Clock,
) -> Result<Percentiles, A::Error> {
    (0..WARM_UP).try_for_each(|_| allocator.pair(PAIR_BYTES))?;
    let mut spreads = Vec::with_capacity(repeats);
    for _ in 0..repeats.max(1) {
        let mut batches = Vec::with_capacity(BATCHES);
        for _ in 0..BATCHES {
            let start = clock.now();
            (0..BATCH).try_for_each(|_| allocator.pair(PAIR_BYTES))?;
            batches.push(nanoseconds(clock.now() - start) / f64::from(BATCH));
        }
        let look = looking_at(clock);
        let mut singles = Vec::with_capacity(SINGLES);
        for _ in 0..SINGLES {
            let start = clock.now();
            allocator.pair(PAIR_BYTES)?;
            singles.push((nanoseconds(clock.now() - start) - look).max(0.0));
        }
        spreads.push(Percentiles { p50: Percentiles::of(batches).p50, p99: Percentiles::of(singles).p99 });
    }
    Ok(Percentiles::median(&spreads))
}

/// Nanoseconds that pass for each pair when as many threads as there are allocators make pairs at once: elapsed time over
/// threads times pairs. One value for each repeat.
///
/// # Errors
/// Whatever an allocator says.
pub fn time_threads<A>(
    allocators: Vec<A>,
    pairs: usize,
    repeats: usize,
    clock: &dyn Clock,
) -> Result<Vec<f64>, A::Error>
where
    A: Allocator + Send,
    A::Error: Send,
{
    let threads = allocators.len();
    let turn = Barrier::new(threads + 1);
    let failure = Mutex::new(None);
    let mut values = Vec::with_capacity(repeats);
    std::thread::scope(|scope| {
        for mut allocator in allocators {
            let (turn, failure) = (&turn, &failure);
            scope.spawn(move || {
                let keep = |answer: Result<(), A::Error>| {
                    if let Err(error) = answer {
                        *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    }
                };
                keep((0..WARM_UP).try_for_each(|_| allocator.pair(PAIR_BYTES)));
                for _ in 0..repeats {
                    turn.wait();
                    keep((0..pairs).try_for_each(|_| allocator.pair(PAIR_BYTES)));
                    turn.wait();
                }
            });
        }
        for _ in 0..repeats {
            turn.wait();
            let start = clock.now();
            turn.wait();
            values.push(nanoseconds(clock.now() - start) / (threads.max(1) * pairs.max(1)) as f64);
        }
    });
    match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(values),
    }
}

/// The median time between two looks at a clock.
fn looking_at(clock: &dyn Clock) -> f64 {
    let looks = (0..1000).map(|_| {
        let start = clock.now();
        nanoseconds(clock.now() - start)
    });
    Percentiles::of(looks.collect()).p50
}

fn nanoseconds(time: Duration) -> f64 {
    time.as_nanos() as f64
}
