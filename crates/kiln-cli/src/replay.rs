//! `kiln replay`: the calls of an allocation log, made again.
//!
//! The log is RMM's CSV, kiln's CSV or a trace file of kiln. It is replayed on a chosen memory stack with its threads and streams;
//! then, on simulated devices, with less and less memory, to find the smallest size that serves every request.

mod outcome;

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use kiln_driver::{Driver, WallClock};
use kiln_mem::replay::{
    AllocationLog, LogOptions, LogProblem, ReplayReport, ReplayStack, replay, smallest_memory,
};
use kiln_mem::{Budget, HeapConfig, Stack};
use kiln_sim::{DeviceConfig, Machine, MachineConfig};

use crate::console::Console;
use crate::device_choice::Where;
use crate::exit_code::Exit;
use crate::failure::{Failure, Place};

use outcome::Outcome;

/// The least memory of a simulated device, which has four times the peak of the log ...
const SIMULATED_LEAST_BYTES: u64 = 1 << 30;
/// ... and the most: larger requests of a log are refused.
const SIMULATED_MOST_BYTES: u64 = 1 << 42;

const EXAMPLES: &str = "Examples:
  kiln replay rmm_log.csv
  kiln replay rmm_log.csv --stack \"budget(8GiB, stats(heap))\" --json
  kiln replay kiln.trace --stack pool --device cuda

A stack is a base inside of layers.
Bases: heap, heap(spare=50%, mapping=1GiB), chunks, host, pages, direct, pool.
Layers, in any order: budget(8GiB, ...), limit(8GiB, ...), stats(...), trace(65536, ...), \
     guard(256B, 64MiB, ...), leaks(100, ...), align(4KiB, ...), retry(2, ...), fail(10, 3, 1MiB, \
     ...).

Exit codes: 0 replayed (refused requests are counted), 2 wrong usage or log file, 3 refused, 5 \
     fault.";

/// The flags of `kiln replay`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The log: RMM's CSV, kiln's CSV or a trace file of kiln.
    log: PathBuf,
    /// The memory stack, such as "budget(8GiB, stats(heap))".
    #[arg(long, default_value = "heap")]
    stack: Stack,
    /// Where to run; `auto` takes a GPU if there is one and the policy allows it, else the simulated device.
    #[arg(long, value_enum, default_value_t = Where::Auto)]
    device: Where,
    /// Accept a log that begins in the middle: frees of blocks that it does not allocate are skipped.
    #[arg(long)]
    partial: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, console: &mut Console) -> Result<Exit, Failure> {
    let outcome = perform(arguments)?;
    match arguments.json {
        true => console.json(&outcome)?,
        false => console.line(outcome),
    }
    Ok(Exit::Done)
}

fn perform(arguments: &Arguments) -> Result<Outcome, Failure> {
    let log = read(arguments)?;
    let (driver, _machine) = device(arguments.device, &log)?;
    let name = driver.info().name.clone();
    let heap = HeapConfig::default();
    let report =
        replay_on(driver, &log, &arguments.stack, heap).map_err(|error| Failure::of_memory(&error))?;
    // The stack never takes more than this.
    let most = report.peak_reserved_bytes.max(log.peak_bytes()).min(SIMULATED_MOST_BYTES);
    let smallest = smallest_memory(&log, most, |bytes| {
        let (driver, _machine) = simulated(bytes)?;
        // A heap of host memory is not limited by the device's memory.
        let heap = HeapConfig { budget: Some(Budget::new("memory", bytes)), ..HeapConfig::default() };
        // An error means that the device is too small for the stack itself.
        Ok(replay_on(driver, &log, &arguments.stack, heap).is_ok_and(|report| report.refusals == 0))
    });
    let smallest =
        if log.peak_bytes() == 0 { Some(0) } else { smallest.map_err(|error| Failure::of_memory(&error))? };
    Ok(Outcome::new(name, &arguments.stack, &log, &report, smallest))
}

fn read(arguments: &Arguments) -> Result<AllocationLog, Failure> {
    let path = &arguments.log;
    let file = File::open(path).map_err(|error| Failure::file(path, error))?;
    let options = LogOptions { partial: arguments.partial };
    AllocationLog::read(&mut BufReader::new(file), options).map_err(|error| {
        let failure = Failure::file(path, &error.problem);
        let failure = if error.line > 0 { failure.at(Place::in_line(path, error.line)) } else { failure };
        match error.problem {
            LogProblem::NotLive(_) => failure.next("give --partial"),
            _ => failure,
        }
    })
}

fn replay_on(
    driver: Arc<dyn Driver>,
    log: &AllocationLog,
    stack: &Stack,
    heap: HeapConfig,
) -> kiln_mem::Result<ReplayReport> {
    let stack = ReplayStack::new(driver, stack, heap, log)?;
    replay(log, &stack, &WallClock::new())
}

/// The chosen device; a simulated one lives as long as its machine.
fn device(wanted: Where, log: &AllocationLog) -> Result<(Arc<dyn Driver>, Option<Machine>), Failure> {
    match wanted.gpu_driver()? {
        Some(driver) => Ok((driver, None)),
        None => {
            let bytes = log.peak_bytes().saturating_mul(4).clamp(SIMULATED_LEAST_BYTES, SIMULATED_MOST_BYTES);
            let (driver, machine) = simulated(bytes).map_err(|error| Failure::of_memory(&error))?;
            Ok((driver, Some(machine)))
        }
    }
}

fn simulated(bytes: u64) -> kiln_mem::Result<(Arc<dyn Driver>, Machine)> {
    let machine = Machine::new(MachineConfig::seeded(0).device(DeviceConfig::with_memory(bytes)));
    let driver = machine.device(0)?;
    Ok((driver, machine))
}
