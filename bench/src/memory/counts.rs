//! M7: what a warm pair costs, counted.

use std::sync::Arc;

use kiln_driver::layer::{Counting, Layered};
use kiln_mem::HeapConfig;
use kiln_mem::workload::{Allocator, OnStream, PAIR_BYTES, Spread};

use super::counted::allocations;
use super::{Bench, Setting};
use crate::Failure;
use crate::row::Table;

const PAIRS: u64 = 10_000;

/// M7.
pub(crate) fn warm(bench: &Bench, table: &mut Table) -> Result<(), Failure> {
    if !bench.with_kiln {
        return Ok(());
    }
    let driver = Arc::new(Layered::new(bench.driver()?, Counting::default()));
    let setting = Setting::over(driver.clone(), HeapConfig::default())?;
    let mut kiln = OnStream::new(&setting.heap, setting.stream()?);
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
    let per_pair = |count: u64| Spread { p50: count as f64 / PAIRS as f64, p99: count as f64 / PAIRS as f64 };
    table.add_in("calls", "m7 driver calls", "kiln heap, per pair", per_pair(calls));
    table.add_in("allocs", "m7 host allocations", "kiln heap, per pair", per_pair(allocated));
    Ok(())
}
