//! Faults of every kind on a GPU in a worker process, by real kernels: a table of what was lost and kept, and how long each phase took.
//! `KILN_REQUIRE_GPU=1` makes the absence of a GPU a failure.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test stops at the first surprise, and this one prints a table"
)]

#[path = "../../kiln-isolate/tests/rig/held.rs"]
mod held;
#[path = "isolated/kernels.rs"]
mod kernels;
#[path = "isolated/replay_kernels.rs"]
mod replay_kernels;
#[path = "isolated/replay_scene.rs"]
mod replay_scene;
#[path = "isolated/rig.rs"]
#[allow(dead_code, reason = "the table uses a part of it")]
mod rig;
#[path = "isolated/table.rs"]
mod table;
#[path = "isolated/wild.rs"]
mod wild;

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use held::Held;
use kiln::probe::Availability;
use kiln::recovery::{DeviceSpec, Process, Replay};

/// What a process holds is counted, so one test at a time.
static TURN: Mutex<()> = Mutex::new(());

/// The worker process.
#[test]
#[ignore = "helper process"]
fn worker() {
    kiln::worker_entry();
}

/// Whether there is a GPU. None is opened here: the contexts of these tests live in workers.
fn has_gpu(test: &str) -> bool {
    match kiln::probe::availability().unwrap() {
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
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    if has_gpu("every_kind_of_fault_on_a_gpu") {
        println!("{}", table::run(&DeviceSpec::cuda(0), 16 << 20, Duration::from_millis(1500)));
    }
}

/// About a third of a second of going around before the fault, in which everything else is queued.
const ROUNDS: u32 = 1_000_000;

#[test]
fn work_behind_a_fault_is_done_again_on_a_gpu() {
    if has_gpu("work_behind_a_fault_is_done_again_on_a_gpu") {
        for standby in [false, true] {
            println!("{}\n", replay_scene::run(&DeviceSpec::cuda(0), ROUNDS, standby));
        }
    }
}

/// What a launch costs where its work may be done again, and where it may not.
#[test]
fn the_price_of_marks_on_a_gpu() {
    const LAUNCHES: u32 = 20_000;
    if !has_gpu("the_price_of_marks_on_a_gpu") {
        return;
    }
    for replay in [Replay::Never, Replay::NotStarted] {
        let gpu = rig::open_on(&DeviceSpec::cuda(0), Process { replay, ..rig::process() });
        let bump = gpu.kernel(replay_kernels::PTX, "bump").unwrap();
        let counter = gpu.upload(&[0_u32]).unwrap();
        for (round, launches) in [(1, 1000), (2, LAUNCHES)] {
            gpu.synchronize().unwrap();
            let begun = Instant::now();
            for _ in 0..launches {
                // SAFETY: the kernel touches one element.
                unsafe { gpu.launch(&bump).grid(1).block(1).read_write(&counter).submit() }.unwrap();
            }
            let queued = begun.elapsed() / launches;
            gpu.synchronize().unwrap();
            if round == 2 {
                println!(
                    "{replay:?}: {queued:?} to queue a launch, {:?} to have it done",
                    begun.elapsed() / launches
                );
            }
        }
        assert_eq!(counter.download().unwrap(), [LAUNCHES + 1000]);
    }
}

#[test]
fn a_read_only_block_on_a_gpu_survives_a_wild_write() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    if !has_gpu("a_read_only_block_on_a_gpu_survives_a_wild_write") {
        return;
    }
    for standby in [false, true] {
        match wild::run(&DeviceSpec::cuda(0), Process { standby, ..rig::process() }) {
            Ok(()) => {
                println!("read-only blocks, standby {standby}: supported; kept through two wild writes")
            }
            Err(error) => println!("read-only blocks, standby {standby}: {error}"),
        }
    }
}

#[test]
fn a_hundred_faults_in_a_row_on_a_gpu() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    if !has_gpu("a_hundred_faults_in_a_row_on_a_gpu") {
        return;
    }
    let gpu = rig::open_on(&DeviceSpec::cuda(0), Process { standby: true, ..rig::process() });
    let kept = gpu.upload(&[7_u32; 1 << 20]).unwrap();
    gpu.synchronize().unwrap();
    let illegal = gpu.kernel(kernels::PTX, "illegal").unwrap();
    let (mut first, begun) = (None, Instant::now());
    for generation in 0..100 {
        let touched = gpu.zeros::<u32>(1).unwrap();
        // SAFETY: it is to fault.
        let ticket = unsafe { gpu.launch(&illegal).grid(1).block(1).write(&touched).submit() }.unwrap();
        assert!(ticket.wait().unwrap_err().is_lost());
        rig::recovered(&gpu, generation);
        if generation == 0 {
            first = Some(Held::settled_with(2));
        }
    }
    assert_eq!(kept.download().unwrap(), [7; 1 << 20]);
    let first = first.unwrap().counts();
    let settled = Held::settles_at(first);
    println!(
        "100 faults in {:?}; descriptors, processes, threads and mappings {first:?} after the first, {:?} after the last",
        begun.elapsed(),
        Held::now().counts()
    );
    assert!(settled, "something leaks");
}
