//! Time of an operation, as a median over repeats.

use std::time::Instant;

pub(crate) use kiln_mem::workload::Spread;

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
