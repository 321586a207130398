//! Time of an operation, as a median over repeats.

use std::time::Instant;

/// Median and 99th percentile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

impl Spread {
    /// Of single values.
    pub(crate) fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let at = |part: f64| values[((values.len() - 1) as f64 * part) as usize];
        Self { p50: at(0.5), p99: at(0.99) }
    }

    /// The median of each over repeats.
    pub(crate) fn median(spreads: &[Self]) -> Self {
        let middle = |values: Vec<f64>| Self::of(values).p50;
        Self {
            p50: middle(spreads.iter().map(|spread| spread.p50).collect()),
            p99: middle(spreads.iter().map(|spread| spread.p99).collect()),
        }
    }
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
