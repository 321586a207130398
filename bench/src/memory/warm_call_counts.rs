//! M7: what a warm pair costs, and an operation among blocks of all sizes, counted.

use std::sync::Arc;

use kiln_driver::layer::{Counting, Layered};
use kiln_mem::HeapConfig;
use kiln_mem::workload::{Allocator, PAIR_BYTES, Percentiles, RandomLives, StreamAllocator};

use super::counting_allocator::allocations;
use super::{Bench, Setting};
use crate::Failure;
use crate::result_table::Table;

const PAIRS: u64 = 10_000;
/// Blocks of the runs of M2 that are counted, and the runs before them: the first grows, and the second begins elsewhere.
const LIVES: usize = 1000;
const WARM_RUNS: usize = 4;

/// M7.
pub(crate) fn warm(bench: &Bench, table: &mut Table) -> Result<(), Failure> {
    if !bench.with_kiln {
        return Ok(());
    }
    let driver = Arc::new(Layered::new(bench.driver()?, Counting::default()));
    let setting = Setting::over(driver.clone(), HeapConfig::default())?;
    let mut kiln = StreamAllocator::new(&setting.heap, setting.stream()?);
    let mut pairs = |count: u64| {
        for _ in 0..count {
            if let Some(block) = kiln.allocate(PAIR_BYTES)? {
                kiln.free(block)?;
            }
        }
        Ok::<(), Failure>(())
    };
    pairs(100)?;
    let (calls, allocated) = (driver.layer().counts(), allocations());
    pairs(PAIRS)?;
    let (allocated, calls) = (allocations() - allocated, driver.layer().counts().since(&calls).total());
    add(table, "kiln heap, per pair", PAIRS, calls, allocated);
    for max_bytes in RandomLives::MAX_BYTES {
        random_lives(bench, table, RandomLives { count: LIVES, max_bytes })?;
    }
    Ok(())
}

/// The same for a program that repeats itself.
fn random_lives(bench: &Bench, table: &mut Table, lives: RandomLives) -> Result<(), Failure> {
    let driver = Arc::new(Layered::new(bench.driver()?, Counting::default()));
    let setting = Setting::over(driver.clone(), HeapConfig::default())?;
    let mut kiln = StreamAllocator::new(&setting.heap, setting.stream()?);
    for _ in 0..WARM_RUNS {
        lives.run(&mut kiln, bench.thread_clock())?;
    }
    let (calls, allocated) = (driver.layer().counts(), allocations());
    lives.run(&mut kiln, bench.thread_clock())?;
    let (allocated, calls) = (allocations() - allocated, driver.layer().counts().since(&calls).total());
    let subject = format!("kiln heap, per operation, max {} MiB", lives.max_bytes >> 20);
    // The list of the workload is made by one of them.
    add(table, &subject, 2 * lives.count as u64, calls, allocated);
    Ok(())
}

fn add(table: &mut Table, subject: &str, operations: u64, calls: u64, allocated: u64) {
    let each = |count: u64| {
        let each = count as f64 / operations as f64;
        Percentiles { p50: each, p99: each }
    };
    table.add_in("calls", "m7 driver calls", subject, each(calls));
    table.add_in("allocs", "m7 host allocations", subject, each(allocated));
}
