//! Time of an operation, as a median over repeats.

use std::time::Instant;

pub(crate) use kiln_mem::workload::Spread;

/// Seconds this thread has spent on a core so far, as Linux counts them.
pub(crate) fn thread_seconds() -> Result<f64, crate::Failure> {
    let counted = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let spent_ns: f64 = counted.split_whitespace().next().ok_or("no time is counted")?.parse()?;
    Ok(spent_ns / 1e9)
}

/// Times batches of an operation: nanoseconds per operation, one value a batch. `settle` runs between batches, untimed.
pub(crate) fn batches<E>(
    count: usize,
    batch: usize,
    mut operation: impl FnMut() -> Result<(), E>,
    mut settle: impl FnMut() -> Result<(), E>,
) -> Result<Spread, E> {
    let mut values = Vec::with_capacity(count);
    for _ in 0..count {
        let start = Instant::now();
        for _ in 0..batch {
            operation()?;
        }
        values.push(start.elapsed().as_nanos() as f64 / batch as f64);
        settle()?;
    }
    Ok(Spread::of(values))
}
