//! M5: nine tenths of a limit in use, sizes of all magnitudes.

use kiln_mem::workload::{Filling, FillingResult, Percentiles, StreamAllocator};
use kiln_mem::{Budget, HeapConfig};

use super::{Bench, RawPool};
use crate::Failure;
use crate::result_table::Table;

/// M5: requests of 2 MiB and more that were refused, of so many.
pub(crate) fn nine_tenths(bench: &Bench, table: &mut Table) -> Result<(), Failure> {
    let filling = Filling::default();
    if bench.is_cuda() {
        let mut pool = RawPool::new(filling.limit_bytes)?;
        add(table, "raw cuMemAllocAsync, pool of 16 GiB", filling.run(&mut pool)?);
    }
    if bench.with_kiln {
        let budget = Some(Budget::new("m5", filling.limit_bytes));
        let setting = bench.setting(HeapConfig { budget, ..HeapConfig::default() })?;
        let mut kiln = StreamAllocator::new(&setting.heap, setting.stream()?);
        add(table, "kiln heap, budget of 16 GiB", filling.run(&mut kiln)?);
    }
    Ok(())
}

fn add(table: &mut Table, subject: &str, filled: FillingResult) {
    let FillingResult { requests, large_requests, refused, large_refused, peak_live_bytes } = filled;
    table.note(format!(
        "m5 {subject}: {refused} of {requests} refused, {large_refused} of {large_requests} large ones; \
         {} MiB live at the peak",
        peak_live_bytes >> 20
    ));
    let large = large_refused as f64;
    table.add_in("refused", "m5", subject, Percentiles { p50: large, p99: large });
}
