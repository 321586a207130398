//! M2 and M4: blocks of random sizes and lifetimes, their time and the memory they take.
//!
//! The first run of a point grows the heap and is not counted; those after it are. Space is the peak over all of them. What
//! the first run took is a separate row for kiln, and every run that called the driver is noted: a heap that starts with
//! its frames in other places maps other rows of them, which is what makes a run slow.
//!
//! A run of a thousand blocks is over in a fifth of a millisecond, half of which is spent on getting the caches warm again after
//! the one before. Every subject is therefore run until its runs fill [`FILLED`], and at least `--repeats` times, but not again
//! once they fill [`ENOUGH`]: there are pools that take a quarter of a minute for one run.
//!
//! These runs repeat themselves. The rows "never repeating" have another seed in every run, which is where a heap that keeps
//! its reserve small has to pay, and one that has memory to spare does not. They are made exactly `--repeats` times, so that every
//! subject is asked for the same; then kiln goes on until mapping has cost enough, and is measured once more.

use std::time::{Duration, Instant};

use kiln_mem::workload::{Allocator, Lcg, Percentiles, RandomLives, RandomLivesResult, StreamAllocator};
use kiln_mem::{Heap, HeapActivity, HeapConfig, MemoryResource, Spare};

use super::{Bench, CudarcSlices, RawPool};
use crate::Failure;
use crate::fastest_core::FastestCore;
use crate::result_table::Table;

/// Blocks of the runs that never repeat themselves; their cost hardly depends on how many there are.
const NEVER_REPEATING_COUNT: usize = 10_000;

/// What the measured runs of a point fill together, for every subject.
const FILLED: Duration = Duration::from_millis(50);

/// What they fill at the most before the last of them begins.
const ENOUGH: Duration = Duration::from_secs(30);

/// Seeds of the runs until a heap holds more.
const LATER_SEED: u64 = 1 << 32;
/// ... which are given up after this time.
const PATIENCE: Duration = Duration::from_secs(120);

/// M2 and M4.
pub(crate) fn time_and_space(bench: &Bench, table: &mut Table) -> Result<(), Failure> {
    for max_bytes in RandomLives::MAX_BYTES {
        for count in RandomLives::COUNTS.into_iter().filter(|count| bench.wants_blocks(*count)) {
            point(bench, table, RandomLives { count, max_bytes })?;
        }
    }
    Ok(())
}

/// The same, never twice.
pub(crate) fn never_twice(bench: &Bench, table: &mut Table) -> Result<(), Failure> {
    for max_bytes in RandomLives::MAX_BYTES {
        never_repeating(bench, table, RandomLives { count: NEVER_REPEATING_COUNT, max_bytes })?;
    }
    Ok(())
}

/// Measures every subject with another seed in every run.
fn never_repeating(bench: &Bench, table: &mut Table, lives: RandomLives) -> Result<(), Failure> {
    let name = format!("never repeating max {} MiB n {}", lives.max_bytes >> 20, lives.count);
    if bench.is_cuda() {
        let mut pool = RawPool::new(0)?;
        let (spread, peak) = repeat_anew(bench, lives, Lcg::SEED, &mut pool)?;
        add_point(table, &name, "raw cuMemAllocAsync", spread, pool.peak_reserved_bytes()?, peak);
    }
    for spare in [Spare::default(), Spare::percent(50)] {
        if !bench.with_kiln {
            break;
        }
        let setting = bench.setting(HeapConfig { spare, ..HeapConfig::default() })?;
        let mut kiln = StreamAllocator::new(&setting.heap, setting.stream()?);
        let (spread, peak) = repeat_anew(bench, lives, Lcg::SEED, &mut kiln)?;
        let subject = format!("kiln {}", setting.heap);
        let reserved = setting.heap.accounting().peak_reserved_bytes;
        add_point(table, &name, &subject, spread, reserved, peak);
        let operations = 2 * lives.count * (bench.repeats + 1);
        table.note(format!("m2 {name}: {subject}, {operations} operations: {}", setting.heap.activity()));
        if let Some(runs) = runs_until_spared(bench, lives, &setting.heap, &mut kiln)? {
            let seed = LATER_SEED + runs;
            let (spread, later_peak) = repeat_anew(bench, lives, seed, &mut kiln)?;
            let subject = format!("{subject}, once mapping has cost enough");
            let reserved = setting.heap.accounting().peak_reserved_bytes;
            add_point(table, &name, &subject, spread, reserved, peak.max(later_peak));
            table.note(format!("m2 {name}: {subject}, after {runs} more runs: {}", setting.heap.activity()));
        }
    }
    if bench.is_cuda() {
        let (spread, _) = repeat_anew(bench, lives, Lcg::SEED, &mut CudarcSlices::new()?)?;
        table.add(format!("m2 {name}"), "cudarc", spread);
    }
    Ok(())
}

/// Goes on until the heap holds more because mapping has cost enough; how many runs that took. None if it maps nothing or is not at that point
/// after [`PATIENCE`].
fn runs_until_spared<A: Allocator>(
    bench: &Bench,
    lives: RandomLives,
    heap: &Heap,
    allocator: &mut A,
) -> Result<Option<u64>, Failure>
where
    Failure: From<A::Error>,
{
    if heap.activity().remaps_mapped == 0 {
        return Ok(None);
    }
    let (start, mut runs) = (Instant::now(), 0);
    while heap.activity().spare_raised == 0 {
        let before = heap.activity();
        check_refused(&lives.run_from(LATER_SEED + runs, allocator, bench.thread_clock())?)?;
        runs += 1;
        if start.elapsed() > PATIENCE || heap.activity().since(&before).remaps_mapped == 0 {
            return Ok(None);
        }
    }
    Ok(Some(runs))
}

fn add_point(table: &mut Table, name: &str, subject: &str, time: Percentiles, reserved: u64, live: u64) {
    table.add(format!("m2 {name}"), subject, time);
    let ratio = reserved as f64 / live as f64;
    table.add_in("res/live", format!("m4 {name}"), subject, Percentiles { p50: ratio, p99: ratio });
}

/// A run that is not counted, then the others, each from a different seed; with the most that was live in any of them.
fn repeat_anew<A: Allocator>(
    bench: &Bench,
    lives: RandomLives,
    first_seed: u64,
    allocator: &mut A,
) -> Result<(Percentiles, u64), Failure>
where
    Failure: From<A::Error>,
{
    let _core = FastestCore::find();
    let (mut values, mut peak) = (Vec::with_capacity(bench.repeats), 0);
    for run in 0..=bench.repeats as u64 {
        let lived = lives.run_from(first_seed + run, allocator, bench.thread_clock())?;
        check_refused(&lived)?;
        peak = peak.max(lived.peak_live_bytes);
        if run > 0 {
            values.push(lived.nanoseconds);
        }
    }
    Ok((Percentiles::of(values), peak))
}

fn check_refused(lived: &RandomLivesResult) -> Result<(), Failure> {
    match lived.refused {
        0 => Ok(()),
        refused => Err(format!("{refused} requests were refused; the device is too small").into()),
    }
}

fn point(bench: &Bench, table: &mut Table, lives: RandomLives) -> Result<(), Failure> {
    let name = format!("max {} MiB n {}", lives.max_bytes >> 20, lives.count);
    let (time, space) = (format!("m2 {name}"), format!("m4 {name}"));
    if bench.is_cuda() {
        let mut pool = RawPool::new(0)?;
        let (spread, lived) = repeat(bench, lives, &mut pool, |_, _| ())?;
        table.add(&time, "raw cuMemAllocAsync", spread);
        let ratio = pool.peak_reserved_bytes()? as f64 / lived.peak_live_bytes as f64;
        table.add_in("res/live", &space, "raw cuMemAllocAsync", Percentiles { p50: ratio, p99: ratio });
    }
    if bench.with_kiln {
        let setting = bench.setting(HeapConfig::default())?;
        let mut kiln = StreamAllocator::new(&setting.heap, setting.stream()?);
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
        table.add(&time, "kiln heap, first run", Percentiles { p50: first, p99: first });
        notes.into_iter().for_each(|note| table.note(note));
        let host_mib = setting.heap.mapping_host_bytes() >> 20;
        if host_mib > 0 {
            table.note(format!("{time}: the rows that kiln keeps mapped cost the host about {host_mib} MiB"));
        }
        let reserved = setting.heap.accounting().peak_reserved_bytes;
        let ratio = reserved as f64 / lived.peak_live_bytes as f64;
        table.add_in("res/live", &space, "kiln heap", Percentiles { p50: ratio, p99: ratio });
    }
    if bench.is_cuda() {
        let (spread, _) = repeat(bench, lives, &mut CudarcSlices::new()?, |_, _| ())?;
        table.add(&time, "cudarc", spread);
    }
    Ok(())
}

/// A run that is not counted, then the others, until there are enough of them; with what came of the first.
fn repeat<A: Allocator>(
    bench: &Bench,
    lives: RandomLives,
    allocator: &mut A,
    mut after: impl FnMut(usize, f64),
) -> Result<(Percentiles, RandomLivesResult), Failure>
where
    Failure: From<A::Error>,
{
    let _core = FastestCore::find();
    let warm = lives.run(allocator, bench.thread_clock())?;
    after(0, warm.nanoseconds);
    let (mut values, mut measured) = (Vec::with_capacity(bench.repeats), Duration::ZERO);
    while (values.len() < bench.repeats && measured < ENOUGH) || measured < FILLED {
        let lived = lives.run(allocator, bench.thread_clock())?;
        check_refused(&lived)?;
        values.push(lived.nanoseconds);
        after(values.len(), lived.nanoseconds);
        measured += lived.time;
    }
    Ok((Percentiles::of(values), warm))
}
