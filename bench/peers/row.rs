//! What the peers in Rust print, and how an operation is timed: as `kiln-bench` does it.

use std::time::Instant;

use crate::Failure;

/// Repeats of each measurement.
pub(crate) const REPEATS: usize = 5;

/// The median and the 99th percentile of some values.
#[derive(Clone, Copy)]
pub(crate) struct Spread {
    p50: f64,
    p99: f64,
}

impl Spread {
    pub(crate) fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let at = |percent: usize| values.get(values.len().saturating_sub(1) * percent / 100).copied();
        Self { p50: at(50).unwrap_or(0.0), p99: at(99).unwrap_or(0.0) }
    }

    /// The medians of several.
    fn median(spreads: &[Self]) -> Self {
        let middle = |part: fn(&Self) -> f64| Self::of(spreads.iter().map(part).collect()).p50;
        Self { p50: middle(|spread| spread.p50), p99: middle(|spread| spread.p99) }
    }
}

/// Times batches of an operation in nanoseconds per operation, several times over. `end` belongs to the batch, `settle` does not.
pub(crate) fn batches(
    (count, batch): (usize, usize),
    mut operation: impl FnMut() -> Result<(), Failure>,
    mut end: impl FnMut() -> Result<(), Failure>,
    mut settle: impl FnMut() -> Result<(), Failure>,
) -> Result<Spread, Failure> {
    let mut spreads = Vec::with_capacity(REPEATS);
    for _ in 0..REPEATS {
        let mut values = Vec::with_capacity(count);
        for _ in 0..count {
            let start = Instant::now();
            for _ in 0..batch {
                operation()?;
            }
            end()?;
            values.push(start.elapsed().as_nanos() as f64 / batch as f64);
            settle()?;
        }
        spreads.push(Spread::of(values));
    }
    Ok(Spread::median(&spreads))
}

/// Prints one measurement.
pub(crate) fn print(workload: &str, subject: &str, spread: Spread, unit: &str) {
    let Spread { p50, p99 } = spread;
    println!(
        r#"{{"workload":"{workload}","subject":"{subject}","p50":{p50:.3},"p99":{p99:.3},"unit":"{unit}"}}"#
    );
}

/// Prints what of a peer could not be measured, and why.
pub(crate) fn absent(peer: &str, why: &str) {
    println!("absent: {peer}: {why}");
}
