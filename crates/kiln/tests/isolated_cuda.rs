//! Faults of every kind on a GPU in a worker process, by real kernels: a table of what was lost and kept, and how long each phase took.
//! `KILN_REQUIRE_GPU=1` makes the absence of a GPU a failure.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test stops at the first surprise, and this one prints a table"
)]

#[path = "isolated/kernels.rs"]
mod kernels;
#[path = "isolated/rig.rs"]
#[allow(dead_code, reason = "the table uses a part of it")]
mod rig;
#[path = "isolated/table.rs"]
mod table;

use std::time::{Duration, Instant};

use kiln::Availability;
use kiln::survival::{Backend, Process};

/// The worker process; in the test run itself it does nothing.
#[test]
fn worker() {
    kiln::worker_entry();
}

/// Whether there is a GPU. None is opened here: the contexts of these tests live in workers.
fn has_gpu(test: &str) -> bool {
    match kiln::availability().unwrap() {
        Availability::Available(_) => true,
        Availability::Absent(absence) => {
            let required = std::env::var_os("KILN_REQUIRE_GPU").is_some_and(|value| value == "1");
            assert!(!required, "{absence}");
            kiln::probe::count_skip(test, &absence.to_string()).unwrap();
            false
        }
    }
}

#[test]
fn every_kind_of_fault_on_a_gpu() {
    if has_gpu("every_kind_of_fault_on_a_gpu") {
        println!("{}", table::run(&Backend::cuda(0), 16 << 20, Duration::from_millis(1500)));
    }
}

#[test]
fn a_hundred_faults_in_a_row_on_a_gpu() {
    if !has_gpu("a_hundred_faults_in_a_row_on_a_gpu") {
        return;
    }
    let gpu = rig::open_on(&Backend::cuda(0), Process { standby: true, ..rig::process() });
    let kept = gpu.upload(&[7_u32; 1 << 20]).unwrap();
    gpu.synchronize().unwrap();
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let illegal = gpu.kernel(kernels::PTX, "illegal").unwrap();
    let (mut first, begun) = (None, Instant::now());
    for generation in 0..100 {
        let touched = gpu.zeros::<u32>(1).unwrap();
        // SAFETY: it is to fault.
        let ticket = unsafe { gpu.launch(&illegal).write(&touched).submit() }.unwrap();
        assert!(ticket.wait().unwrap_err().is_sticky());
        rig::recovered(&gpu, generation);
        if generation == 10 {
            first = Some(descriptors());
        }
    }
    assert_eq!(kept.download().unwrap(), [7; 1 << 20]);
    // A standby that is starting holds a few more than one that is ready.
    let grown = descriptors().abs_diff(first.unwrap());
    println!("100 faults in {:?}, {grown} descriptors more or less", begun.elapsed());
    assert!(grown < 16, "descriptors leak");
}
