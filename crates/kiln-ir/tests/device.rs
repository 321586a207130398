//! Programs on devices give what the interpreter gives: on the simulated one, and on a GPU where there is one.
//!
//! `KILN_IR_PROGRAMS=20000` says how many random programs there are, `KILN_IR_SEED=7` with which they begin. A failure prints the
//! seed and the program. `KILN_REQUIRE_GPU=1` makes the absence of a GPU a failure.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test stops at the first surprise"
)]

mod generate;
mod rig;

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use generate::generate;
use kiln_cuda::CudaDevice;
use kiln_driver::Driver;
use kiln_ir::{Program, Target, ThreadOrder};
use kiln_sim::{Machine, MachineConfig, PtxEngine};
use rig::compare::{describe, same};
use rig::device::{Device, Job};
use rig::golden::GOLDEN;
use rig::run_line::{Run, run_lines};
use rig::{Launch, interpret};

/// Random programs on a GPU, and on the simulated device, which takes longer for each.
const GPU_PROGRAMS: u64 = 20_000;
const SIMULATED_PROGRAMS: u64 = 300;
/// Programs in one module.
const BATCH: u64 = 50;
/// Failures that are printed in full.
const MAX_PRINTED: usize = 10;

#[test]
fn random_programs_give_the_same_on_the_simulated_device() {
    let machine = simulated();
    examine_all(machine.device(0).unwrap(), 1, SIMULATED_PROGRAMS);
    assert!(machine.findings().is_empty(), "{:#?}", machine.findings());
}

#[test]
fn random_programs_give_the_same_on_a_gpu() {
    let Some(driver) = gpu("random_programs_give_the_same_on_a_gpu") else { return };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    examine_all(driver, workers, GPU_PROGRAMS);
}

#[test]
fn every_run_line_holds_on_the_simulated_device() {
    let machine = simulated();
    check_run_lines(machine.device(0).unwrap());
    // A thread that traps does not come to the next barrier of its block, which is worth a word from the simulated device.
    let findings = machine.findings();
    let unexpected: Vec<_> = findings.iter().filter(|finding| !finding.subject.contains(" traps_")).collect();
    assert!(unexpected.is_empty(), "{unexpected:#?}");
}

#[test]
fn every_run_line_holds_on_a_gpu() {
    let Some(driver) = gpu("every_run_line_holds_on_a_gpu") else { return };
    check_run_lines(driver);
}

fn simulated() -> Machine {
    Machine::new(MachineConfig::seeded(1).engine(Arc::new(PtxEngine::default())))
}

/// The first GPU. A test that looked at nothing is counted as skipped, not as passed.
fn gpu(test: &str) -> Option<Arc<dyn Driver>> {
    let required = std::env::var_os("KILN_REQUIRE_GPU").is_some_and(|value| value == "1");
    match CudaDevice::open(0) {
        Ok(driver) => Some(driver),
        Err(reason) if required || !reason.is_absence() => panic!("{reason}"),
        Err(reason) => {
            if let Some(path) = std::env::var_os("KILN_SKIP_LOG") {
                let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
                // In one piece: other tests write there too.
                file.write_all(format!("kiln-ir {test}: {reason}\n").as_bytes()).unwrap();
            }
            None
        }
    }
}

/// The targets whose code a device runs: its own, and what lacks more and more.
fn targets(best: Target) -> Vec<Target> {
    let lower = [80, 75, 70].into_iter().filter_map(Target::new).filter(|target| *target < best);
    [best].into_iter().chain(lower).collect()
}

/// Runs random programs on a device; what differs from the interpreter is printed.
fn examine_all(driver: Arc<dyn Driver>, workers: usize, programs: u64) {
    let number = |name: &str| std::env::var(name).ok().map(|value| value.parse::<u64>().unwrap());
    let first = number("KILN_IR_SEED").unwrap_or(1);
    let end = first + number("KILN_IR_PROGRAMS").unwrap_or(programs);
    let (next, failures) = (AtomicU64::new(first), Mutex::new(Vec::new()));
    let start = std::time::Instant::now();
    let work = || {
        let device = Device::over(driver.clone());
        let targets = targets(device.target());
        loop {
            let from = next.fetch_add(BATCH, Ordering::Relaxed);
            if from >= end {
                return;
            }
            let target = targets[(from / BATCH) as usize % targets.len()];
            let wrong = examine(&device, target, from..end.min(from + BATCH));
            failures.lock().unwrap().extend(wrong);
        }
    };
    std::thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
    let failures = failures.into_inner().unwrap();
    println!("{} programs, {} wrong, {:.1} s", end - first, failures.len(), start.elapsed().as_secs_f64());
    let shown: Vec<String> = failures.iter().take(MAX_PRINTED).cloned().collect();
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), end - first, shown.join("\n"));
}

/// Runs the programs of some seeds as one module; what differs.
fn examine(device: &Device, target: Target, seeds: std::ops::Range<u64>) -> Vec<String> {
    let made: Vec<(Program, Launch)> = seeds.clone().map(generate).collect();
    let jobs: Vec<Job<'_>> = made.iter().map(|(program, launch)| (program, launch)).collect();
    let lefts = match device.run(&jobs, target) {
        Ok(lefts) => lefts,
        Err(what) => return vec![format!("seeds {seeds:?} as {target}: {what}")],
    };
    let wrong = seeds.zip(made.iter().zip(&lefts)).filter_map(|(seed, ((program, launch), left))| {
        let (meaning, _) = interpret(program, launch, ThreadOrder::Ascending);
        let text = || {
            let differs = describe(program, &meaning, left);
            format!(
                "KILN_IR_SEED={seed} KILN_IR_PROGRAMS=1 shows, as {target}:\n{program}\n{differs}\n{launch:?}"
            )
        };
        (!same(program, &meaning, left)).then(text)
    });
    wrong.collect()
}

/// Runs every line of every program in the folder `kir`, for every target the device runs.
fn check_run_lines(driver: Arc<dyn Driver>) {
    let device = Device::over(driver);
    let mut failures = Vec::new();
    for target in targets(device.target()) {
        for (name, text) in GOLDEN {
            let program = Program::parse(text).unwrap();
            let runs: Vec<Run> = run_lines(text).into_iter().map(|line| Run::read(&program, line)).collect();
            let jobs: Vec<Job<'_>> = runs.iter().map(|run| (&program, &run.launch)).collect();
            match device.run(&jobs, target) {
                Ok(lefts) => failures.extend(runs.iter().zip(&lefts).zip(run_lines(text)).filter_map(
                    |((run, left), line)| {
                        let what = run.check(&program, left)?;
                        Some(format!("{name} as {target}:{line}\n  {what}"))
                    },
                )),
                Err(what) => failures.push(format!("{name} as {target}: {what}")),
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
