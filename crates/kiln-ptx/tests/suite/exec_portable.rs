//! Vector instructions, rows, patterns and words change nothing: every launch is made both ways, and all that can be seen of it must be equal.

use kiln_kernels::cases;
use kiln_ptx::exec::LaunchShape;

use crate::both_ways::{Inputs, compare};
use crate::random_kernel::RandomLaunch;

/// Random kernels that are compared; `KILN_EXECUTOR_SEEDS` is another number of them.
const SEEDS: u64 = 150;

#[test]
fn every_kernel_of_the_table_runs_alike_both_ways() {
    for case in cases() {
        let arguments = case.arguments(3);
        let shape = LaunchShape {
            dynamic_shared_bytes: case.shape.shared_bytes,
            cooperative: case.shape.cooperative,
            ..LaunchShape::new(case.shape.grid, case.shape.block)
        };
        let inputs = Inputs {
            contents: arguments.buffers().map(|buffer| buffer.data.to_bytes()).collect(),
            bare_bytes: 0,
            pack: &|addresses| arguments.pack(addresses),
        };
        compare(case.source.ptx, case.entry, &shape, &inputs, 5).unwrap();
    }
}

#[test]
fn random_kernels_run_alike_both_ways() {
    let seeds = std::env::var("KILN_EXECUTOR_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SEEDS);
    for seed in 1..=seeds {
        RandomLaunch::new(seed).compare(seed).unwrap_or_else(|difference| panic!("{difference}"));
    }
}
