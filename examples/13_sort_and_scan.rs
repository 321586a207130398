//! Sorts, counts and prefix sums: where the rows of a table with equal keys begin.
//!
//! `cargo run -p kiln-libs --example 13_sort_and_scan` runs on the GPU where there is one, and on the simulated device otherwise.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use kiln::DeviceRuntime;
use kiln_libs::prims::{Primitives, ReduceOperator, ScanOperator};
use kiln_libs::rand::{Integers, Permutation, Sampler};

const ROWS: usize = 20_000;
const KEYS: usize = 16;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let gpu = DeviceRuntime::auto()?;
    println!("{gpu:?}");
    let (keys, rows) = (gpu.allocate::<u32>(ROWS)?, gpu.allocate::<u32>(ROWS)?);
    let random = Sampler::new(gpu);
    random.draw(1).fill(&keys, Integers { first: 0, last: KEYS as u32 - 1 })?;
    random.draw(2).fill(&rows, Permutation)?;
    let before = keys.download()?;

    // Rows by key, in place. Four bits are enough for sixteen keys.
    let prims = Primitives::new(gpu);
    prims.sort_by_key(&keys, &rows, &keys, &rows).bits(0..4).submit()?;

    // How many rows each key has, and where its first one is.
    let (counts, starts) = (gpu.allocate::<u64>(KEYS)?, gpu.allocate::<u64>(KEYS)?);
    prims.histogram(&keys, 0..KEYS as u32, &counts).submit()?;
    prims.scan_exclusive(&counts, ScanOperator::Sum, 0, &starts).submit()?;
    let largest = gpu.allocate::<u64>(1)?;
    prims.reduce(&counts, ReduceOperator::Max, &largest).submit()?;

    let (keys, counts, starts) = (keys.download()?, counts.download()?, starts.download()?);
    for key in 0..KEYS {
        let (start, count) = (starts[key] as usize, counts[key] as usize);
        assert!(keys[start..start + count].iter().all(|found| *found == key as u32));
        assert_eq!(before.iter().filter(|found| **found == key as u32).count(), count);
    }
    println!(
        "key 3 has rows {}..{}; the most of a key are {}",
        starts[3],
        starts[3] + counts[3],
        largest.download()?[0]
    );
    Ok(())
}
