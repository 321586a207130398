//! Time of an operation, as a median over repeats.

use std::time::Instant;

use crate::Failure;
use crate::fastest_core::FastestCore;

pub(crate) use kiln_mem::workload::Percentiles;

/// Seconds this thread has spent on a core so far, as Linux counts them.
pub(crate) fn thread_seconds() -> Result<f64, Failure> {
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
) -> Result<Percentiles, E> {
    let mut values = Vec::with_capacity(count);
    for _ in 0..count {
        let start = Instant::now();
        for _ in 0..batch {
            operation()?;
        }
        values.push(start.elapsed().as_nanos() as f64 / batch as f64);
        settle()?;
    }
    Ok(Percentiles::of(values))
}

/// Batches of a subject before the next one has its turn.
const TURN: usize = 10;

/// Turns of all subjects on one core before the calmest is looked for again.
const CALM_TURNS: usize = 10;

/// Something to be measured beside others: runs one batch, and gives the nanoseconds of an operation.
pub(crate) type Subject<'a> = Box<dyn FnMut() -> Result<f64, Failure> + 'a>;

/// A subject whose batches are so many operations. `settle` runs after each, untimed.
pub(crate) fn subject<'a>(
    batch: usize,
    mut operation: impl FnMut() -> Result<(), Failure> + 'a,
    mut settle: impl FnMut() -> Result<(), Failure> + 'a,
) -> Subject<'a> {
    Box::new(move || {
        let start = Instant::now();
        for _ in 0..batch {
            operation()?;
        }
        let each = start.elapsed().as_nanos() as f64 / batch as f64;
        settle()?;
        Ok(each)
    })
}

/// Measures so many batches of each subject, a few of one and then of the next, over and over: what disturbs the machine for a while
/// disturbs all of them.
pub(crate) fn in_turn<const N: usize>(
    batches: usize,
    mut subjects: [Subject<'_>; N],
) -> Result<[Percentiles; N], Failure> {
    let mut values: [Vec<f64>; N] = std::array::from_fn(|_| Vec::with_capacity(batches));
    let mut calm = None;
    for turn in 0..batches.div_ceil(TURN) {
        if turn % CALM_TURNS == 0 {
            // The stay before this one ends first.
            drop(calm.take());
            calm = Some(FastestCore::find());
        }
        for (subject, values) in subjects.iter_mut().zip(&mut values) {
            for _ in 0..TURN {
                values.push(subject()?);
            }
        }
    }
    Ok(values.map(Percentiles::of))
}
