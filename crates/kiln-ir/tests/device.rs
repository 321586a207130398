//! Programs on devices give what the interpreter gives: on the simulated one, and on a GPU where there is one.
//!
//! `KILN_IR_PROGRAMS=20000` says how many random programs there are, `KILN_IR_SEED=7` with which they begin. A failure prints the
//! seed and the program. `KILN_REQUIRE_GPU=1` makes the absence of a GPU a failure.
//!
//! A driver compiles PTX on one core for each process, and takes five minutes of it for 20,000 programs that it has not seen before. So without a number
//! the test of random programs on a GPU divides them among processes, each this binary with a range of seeds. With a number everything runs in this
//! process, where a sanitizer or a debugger sees it.

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
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use generate::generate;
use kiln_cuda::CudaDevice;
use kiln_driver::Driver;
use kiln_ir::{Program, PtxTarget, ThreadOrder};
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
/// Processes among which the programs for a GPU are divided, at most: each takes a few hundred megabytes of the device.
const MAX_PROCESSES: u64 = 8;
/// Threads of one of them: one compiles while the other interprets.
const PROCESS_THREADS: &str = "2";
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
    let test = "random_programs_give_the_same_on_a_gpu";
    let Some(driver) = gpu(test) else { return };
    let cores = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    if number("KILN_IR_PROGRAMS").is_some() {
        let workers = number("KILN_IR_THREADS").unwrap_or(cores);
        return examine_all(driver, workers as usize, GPU_PROGRAMS);
    }
    drop(driver);
    examine_in_processes(test, cores.min(MAX_PROCESSES), GPU_PROGRAMS);
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

/// A number in a variable of the environment.
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().unwrap())
}

/// Runs a test of this binary in several processes, each with a part of the programs.
fn examine_in_processes(test: &str, processes: u64, programs: u64) {
    let first = number("KILN_IR_SEED").unwrap_or(1);
    // Whole modules, so that the same seeds share one however many processes there are.
    let share = programs.div_ceil(processes).next_multiple_of(BATCH);
    let run = |from: u64, count: u64| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([test, "--exact", "--nocapture"]).env("KILN_IR_THREADS", PROCESS_THREADS);
        command.env("KILN_IR_SEED", from.to_string()).env("KILN_IR_PROGRAMS", count.to_string());
        let output = command.output().unwrap();
        let said =
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        // A filter that finds no test succeeds too.
        let ran = output.status.success() && said.contains(&format!("{count} programs, 0 wrong"));
        (!ran).then(|| format!("seeds {from}..{}: {}\n{said}", from + count, output.status))
    };
    let failures: Vec<String> = std::thread::scope(|scope| {
        let starts = (0..programs).step_by(share as usize);
        let parts = starts.map(|at| scope.spawn(move || run(first + at, share.min(programs - at))));
        let parts: Vec<_> = parts.collect();
        parts.into_iter().filter_map(|part| part.join().unwrap()).collect()
    });
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The targets whose code a device runs: its own, and what lacks more and more.
fn targets(best: PtxTarget) -> Vec<PtxTarget> {
    let lower = [80, 75, 70].into_iter().filter_map(PtxTarget::new).filter(|target| *target < best);
    [best].into_iter().chain(lower).collect()
}

/// Runs random programs on a device; what differs from the interpreter is printed.
fn examine_all(driver: Arc<dyn Driver>, workers: usize, programs: u64) {
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
fn examine(device: &Device, target: PtxTarget, seeds: std::ops::Range<u64>) -> Vec<String> {
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
