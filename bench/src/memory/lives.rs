//! M2 and M4: random sizes and lives, their time and the space they take.
//!
//! The first run of a point grows the heap and is not counted; those after it are. Space is the peak over all of them. What
//! the first run took is a row of its own for kiln, and every run that called the driver is noted: a heap that starts with
//! its frames in other places maps other rows of them, which is what makes a run slow.

use kiln_mem::workload::{Allocator, Lived, OnStream, RandomLives, Spread};
use kiln_mem::{HeapActivity, HeapConfig, MemoryResource};

use super::{Bench, CudarcSlices, RawPool};
use crate::Failure;
use crate::row::Table;

/// M2 and M4.
pub(crate) fn time_and_space(bench: &Bench, table: &mut Table) -> Result<(), Failure> {
    for max_bytes in RandomLives::MAX_BYTES {
        for count in RandomLives::COUNTS {
            point(bench, table, RandomLives { count, max_bytes })?;
        }
    }
    Ok(())
}

fn point(bench: &Bench, table: &mut Table, lives: RandomLives) -> Result<(), Failure> {
    let name = format!("max {} MiB n {}", lives.max_bytes >> 20, lives.count);
    let (time, space) = (format!("m2 {name}"), format!("m4 {name}"));
    if bench.is_cuda() {
        let mut pool = RawPool::new(0)?;
        let (spread, lived) = repeat(bench, lives, &mut pool, |_, _| ())?;
        table.add(&time, "raw cuMemAllocAsync", spread);
        let ratio = pool.peak_reserved_bytes()? as f64 / lived.peak_live_bytes as f64;
        table.add_in("res/live", &space, "raw cuMemAllocAsync", Spread { p50: ratio, p99: ratio });
    }
    if bench.with_kiln {
        let setting = bench.setting(HeapConfig::default())?;
        let mut kiln = OnStream::new(&setting.heap, setting.stream()?);
        let (mut before, mut notes) = (HeapActivity::default(), Vec::new());
        let (spread, lived) = repeat(bench, lives, &mut kiln, |run, nanoseconds| {
            let activity = setting.heap.activity();
            let here = activity.since(&before);
            before = activity;
            if here.called_driver() {
                notes.push(format!("{time}: run {run} of kiln, {nanoseconds:.0} ns: {here}"));
            }
        })?;
        table.add(&time, "kiln heap", spread);
        let first = lived.nanoseconds;
        table.add(&time, "kiln heap, first run", Spread { p50: first, p99: first });
        notes.into_iter().for_each(|note| table.note(note));
        let reserved = setting.heap.accounting().peak_reserved_bytes;
        let ratio = reserved as f64 / lived.peak_live_bytes as f64;
        table.add_in("res/live", &space, "kiln heap", Spread { p50: ratio, p99: ratio });
    }
    if bench.is_cuda() {
        let (spread, _) = repeat(bench, lives, &mut CudarcSlices::new()?, |_, _| ())?;
        table.add(&time, "cudarc", spread);
    }
    Ok(())
}

fn repeat<A: Allocator>(
    bench: &Bench,
    lives: RandomLives,
    allocator: &mut A,
    mut after: impl FnMut(usize, f64),
) -> Result<(Spread, Lived), Failure>
where
    Failure: From<A::Error>,
{
    let warm = lives.run(allocator, bench.thread_clock())?;
    after(0, warm.nanoseconds);
    let mut values = Vec::with_capacity(bench.repeats);
    for repeat in 0..bench.repeats {
        let lived = lives.run(allocator, bench.thread_clock())?;
        if lived.refused > 0 {
            return Err(format!("{} requests were refused; the device is too small", lived.refused).into());
        }
        after(repeat + 1, lived.nanoseconds);
        values.push(lived.nanoseconds);
    }
    Ok((Spread::of(values), warm))
}
