//! `kiln replay`: a log of allocations, made again.
//!
//! The log is RMM's CSV, kiln's CSV or kiln's own trace file. It is replayed on a stack of the caller's choice with its
//! threads and streams; then, on simulated devices, with less and less memory, to say how little would have done.

mod outcome;

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use kiln_driver::{Driver, WallClock};
use kiln_mem::replay::{Log, LogOptions, LogProblem, Report, Stage, replay, smallest_memory};
use kiln_mem::{Budget, HeapConfig, Stack};
use kiln_sim::{DeviceConfig, Machine, MachineConfig};

use crate::console::{Console, complain};
use crate::device::Where;
use crate::exit::Exit;

use outcome::Outcome;

/// A simulated device has at least so much memory, and four times what is live at once ...
const SIMULATED_LEAST_BYTES: u64 = 1 << 30;
/// ... but no more than this: a log may ask for what no device has, and is refused that.
const SIMULATED_MOST_BYTES: u64 = 1 << 42;

const EXAMPLES: &str = "Examples:
  kiln replay rmm_log.csv
  kiln replay rmm_log.csv --stack \"budget(8GiB, stats(heap))\" --json
  kiln replay kiln.trace --stack pool --device cuda

A stack is a base inside of layers: heap, heap(spare=50%, mapping=1GiB), chunks, host, pages, direct and pool; around them budget(8GiB, ...),
limit(8GiB, ...), stats(...), trace(65536, ...), guard(256B, 64MiB, ...), leaks(100, ...), align(4KiB, ...), retry(2, ...) and
fail(10, 3, 1MiB, ...), in any order.

Exit codes: 0 replayed (refusals are counted), 2 wrong usage or log file, 3 refused, 5 a fault.";

/// The flags of `kiln replay`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The log: RMM's CSV, kiln's CSV or a trace of kiln.
    log: PathBuf,
    /// The memory stack, such as "budget(8GiB, stats(heap))".
    #[arg(long, default_value = "heap")]
    stack: Stack,
    /// Where to run; `auto` takes a GPU if there is one and the policy allows it, else the simulated device.
    #[arg(long, value_enum, default_value_t = Where::Auto)]
    device: Where,
    /// The log may begin in the middle: frees of blocks that it does not allocate are left out.
    #[arg(long)]
    partial: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// How a replay can fail, with the code it ends with.
struct Failure {
    exit: Exit,
    text: String,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, console: &mut Console) -> Exit {
    match perform(arguments) {
        Ok(outcome) => {
            if arguments.json {
                match serde_json::to_string_pretty(&outcome) {
                    Ok(json) => console.line(json),
                    Err(error) => complain(format_args!("kiln replay: {error}")),
                }
            } else {
                console.line(outcome);
            }
            Exit::Done
        }
        Err(failure) => {
            complain(format_args!("kiln replay: {}", failure.text));
            failure.exit
        }
    }
}

fn perform(arguments: &Arguments) -> Result<Outcome, Failure> {
    let path = arguments.log.display();
    let unreadable = |text: String| Failure { exit: Exit::Usage, text: format!("{path}: {text}") };
    let file = File::open(&arguments.log).map_err(|error| unreadable(error.to_string()))?;
    let options = LogOptions { partial: arguments.partial };
    let log = Log::read(&mut BufReader::new(file), options).map_err(|error| {
        let next = if matches!(error.problem, LogProblem::NotLive(_)) { " (--partial)" } else { "" };
        unreadable(format!("{error}{next}"))
    })?;
    let (driver, _machine) = device(arguments.device, &log)?;
    let name = driver.info().name.clone();
    let heap = HeapConfig::default();
    let report = replay_on(driver, &log, &arguments.stack, heap).map_err(memory_failure)?;
    // More than this is never taken, unless the stack refuses by itself.
    let most = report.peak_reserved_bytes.max(log.peak_bytes()).min(SIMULATED_MOST_BYTES);
    let smallest = smallest_memory(&log, most, |bytes| {
        let (driver, _machine) = simulated(bytes)?;
        // The device's memory is no limit for a heap of the host's.
        let heap = HeapConfig { budget: Some(Budget::new("memory", bytes)), ..HeapConfig::default() };
        // A device too small for the stack itself is too small.
        Ok(replay_on(driver, &log, &arguments.stack, heap).is_ok_and(|report| report.refusals == 0))
    });
    let smallest = if log.peak_bytes() == 0 { Some(0) } else { smallest.map_err(memory_failure)? };
    Ok(Outcome::new(name, &arguments.stack, &log, &report, smallest))
}

fn replay_on(
    driver: Arc<dyn Driver>,
    log: &Log,
    stack: &Stack,
    heap: HeapConfig,
) -> kiln_mem::Result<Report> {
    let stage = Stage::new(driver, stack, heap, log)?;
    replay(log, &stage, &WallClock::new())
}

/// The device that was asked for; the machine is there as long as a simulated one is used.
fn device(wanted: Where, log: &Log) -> Result<(Arc<dyn Driver>, Option<Machine>), Failure> {
    let failed = |error: kiln::Error| Failure { exit: Exit::from(&error), text: error.to_string() };
    let simulated = || {
        let bytes = log.peak_bytes().saturating_mul(4).clamp(SIMULATED_LEAST_BYTES, SIMULATED_MOST_BYTES);
        simulated(bytes).map(|(driver, machine)| (driver, Some(machine))).map_err(memory_failure)
    };
    let runtime = match wanted {
        Where::Sim => return simulated(),
        Where::Cuda => kiln::probe::require().map_err(failed)?,
        Where::Auto => {
            let policy = kiln::probe::policy().map_err(failed)?;
            match kiln::probe::prober().resolve(policy).map_err(failed)? {
                Some(runtime) if runtime.info().kind != kiln_driver::DeviceKind::Simulated => runtime,
                _ => return simulated(),
            }
        }
    };
    Ok((Arc::clone(runtime.driver()), None))
}

fn simulated(bytes: u64) -> kiln_mem::Result<(Arc<dyn Driver>, Machine)> {
    let machine = Machine::new(MachineConfig::seeded(0).device(DeviceConfig::with_memory(bytes)));
    let driver = machine.device(0)?;
    Ok((driver, machine))
}

fn memory_failure(error: kiln_mem::Error) -> Failure {
    let exit = match error.refusal() {
        Some(_) => Exit::Absent,
        None if error.is_oom() => Exit::Absent,
        None => Exit::Fault,
    };
    Failure { exit, text: error.to_string() }
}
