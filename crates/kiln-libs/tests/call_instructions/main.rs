//! What a warm product takes from the host over a stand-in for CUDA whose calls do nothing: instructions that lock, and allocations.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

#[path = "../../../kiln/tests/recording/counted_allocations.rs"]
mod counted_allocations;
#[path = "../../../kiln/tests/recording/locked_instruction_counter.rs"]
mod locked_instruction_counter;
#[macro_use]
#[path = "../../../kiln-cuda/tests/on_fake/machine.rs"]
#[allow(dead_code, reason = "the machines are shared with tests that need more of them")]
mod machine;
#[path = "../../../kiln/tests/skip/mod.rs"]
mod skip;

use std::process::{Command, Stdio};
use std::sync::Mutex;

use kiln::{DeviceRuntime, GpuRef};
use kiln_libs::blas::{Blas, Matrix, PreparedMatmul};

use counted_allocations::allocations;
use locked_instruction_counter::{be_looked_at, counted, marked};
use machine::Machine;

/// Calls between two marks.
const CALLS: u64 = 16;
/// Pairs of marks for each kind of call.
const ROUNDS: usize = 3;
/// Set for the child.
const CHILD: &str = "KILN_TEST_CALL_INSTRUCTIONS";

struct Scene {
    buffers: [GpuRef<f32>; 3],
    blas: Blas,
}

impl Scene {
    fn new() -> Self {
        let gpu = DeviceRuntime::try_get(0).unwrap();
        let buffers = [(); 3].map(|()| gpu.zeros(1024).unwrap());
        Self { buffers, blas: Blas::new(gpu) }
    }

    fn multiply(&self) {
        let [a, b, c] = &self.buffers;
        let matrix = |buffer| Matrix::new(buffer, 32, 32);
        self.blas.matmul(matrix(a), matrix(b), matrix(c)).submit().unwrap();
    }

    fn prepared(&self) -> PreparedMatmul<'_, f32, f32> {
        let [a, b, c] = &self.buffers;
        let matrix = |buffer| Matrix::new(buffer, 32, 32);
        self.blas.matmul(matrix(a), matrix(b), matrix(c)).prepare().unwrap()
    }

    fn multiply_prepared(&self, prepared: &PreparedMatmul<'_, f32, f32>) {
        let [a, b, c] = &self.buffers;
        prepared.submit(a, b, c).unwrap();
    }
}

fn with_cublaslt() -> Machine {
    Machine::fake().quiet().with_library("KILN_CUBLASLT", include_str!("cublaslt.c"))
}

/// What the child does.
#[test]
#[ignore = "helper process"]
fn child() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let scene = Scene::new();
    let prepared = scene.prepared();
    let beside = Mutex::new(0);
    let with_lock = || {
        scene.multiply();
        *beside.lock().unwrap() += 1;
    };
    let calls: [&dyn Fn(); 3] = [&with_lock, &|| scene.multiply(), &|| scene.multiply_prepared(&prepared)];
    for _ in 0..64 {
        calls.iter().for_each(|call| call());
    }
    be_looked_at();
    for call in calls {
        for _ in 0..ROUNDS {
            marked(|| (0..CALLS).for_each(|_| call()));
        }
    }
}

on_machine! {
    fn a_warm_product_takes_no_lock() on with_cublaslt() => {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--ignored", "--exact", "child", "--nocapture", "--test-threads=1"]);
        command.env(CHILD, "1").stdin(Stdio::null()).stdout(Stdio::null());
        let Some(rounds) = counted(command.spawn().unwrap()) else {
            return skip::note("a_warm_product_takes_no_lock", "no ptrace");
        };
        // Another thread may have made a lock harder to take once.
        let fewest: Vec<u64> =
            rounds.chunks(ROUNDS).map(|rounds| rounds.iter().map(|seen| seen.locks).min().unwrap()).collect();
        let [with_lock, product, prepared] = fewest[..] else { panic!("{rounds:?}") };
        assert!(with_lock >= CALLS, "a lock is counted: {rounds:?}");
        assert_eq!((product, prepared), (0, 0), "{rounds:?}");
        // A product reads no clock and calls the system for nothing, but for the three calls that the marks make.
        for round in rounds.iter().skip(ROUNDS) {
            assert!(round.system_calls <= 3 && round.clock_reads == 0 && !round.places.is_empty(), "{round:?}");
        }
    }

    fn a_warm_product_takes_nothing_from_the_heap_down_to_the_library() on with_cublaslt() => {
        let scene = Scene::new();
        let prepared = scene.prepared();
        let calls: [&dyn Fn(); 2] = [&|| scene.multiply(), &|| scene.multiply_prepared(&prepared)];
        for call in calls {
            // Tables of what was submitted grow with the first.
            (0..256).for_each(|_| call());
            assert_eq!(allocations(|| (0..1000).for_each(|_| call())), 0);
        }
    }
}
