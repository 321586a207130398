//! `kiln bench`: the memory workloads on this machine.
//!
//! A stack is measured beside the driver's own pool, both through the same calls. What goes around kiln, the raw
//! driver and cudarc, is measured by the program `kiln-bench` in the same run, if it lies beside this one: this program
//! names no binding to CUDA. On the simulated device the figures are what the host pays; its pool is no peer.

mod measure;
mod peers;
mod table;
mod workload;

use std::ops::RangeInclusive;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use kiln_driver::{DeviceKind, Driver};
use kiln_mem::Stack;
use kiln_sim::{DeviceConfig, Machine, MachineConfig};

use crate::console::{Console, complain};
use crate::device::Where;
use crate::exit::Exit;

use measure::Subject;
use table::Table;
use workload::{RowParser, Workload};

/// Memory of the simulated device; nothing of it is touched.
const SIMULATED_BYTES: u64 = 128 << 30;

const EXAMPLES: &str = "Examples:
  kiln bench
  kiln bench m1 m3 --repeats 9
  kiln bench m1..m5 --stack \"stats(heap)\" --json

`kiln replay --help` says what a stack is made of. The raw driver and cudarc are measured by `kiln-bench`, if it lies beside this
program; RMM and PyTorch by the programs in bench/peers.

Exit codes: 0 measured, 2 wrong usage, 3 refused, 5 a fault.";

/// The flags of `kiln bench`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The workloads, or a row of them such as `m1..m5`; all of them if none is named.
    #[arg(value_parser = RowParser)]
    workloads: Vec<RangeInclusive<Workload>>,
    /// The memory stack that is measured, such as "budget(8GiB, stats(heap))".
    #[arg(long, default_value = "heap")]
    stack: Stack,
    /// Where to run; `auto` takes a GPU if there is one and the policy allows it, else the simulated device.
    #[arg(long, value_enum, default_value_t = Where::Auto)]
    device: Where,
    /// Repeats of each measurement; their median is what counts.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeats: u32,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, console: &mut Console) -> Exit {
    let mut table = Table::new(arguments.json);
    match perform(arguments, &mut table, console) {
        Ok(()) => {
            if arguments.json {
                match serde_json::to_string_pretty(&table) {
                    Ok(json) => console.line(json),
                    Err(error) => complain(format_args!("kiln bench: {error}")),
                }
            }
            Exit::Done
        }
        Err((exit, text)) => {
            complain(format_args!("kiln bench: {text}"));
            exit
        }
    }
}

type Failure = (Exit, String);

fn perform(arguments: &Arguments, table: &mut Table, console: &mut Console) -> Result<(), Failure> {
    let rows = &arguments.workloads;
    let is_named = |workload: &&Workload| rows.is_empty() || rows.iter().any(|row| row.contains(workload));
    let workloads: Vec<Workload> = Workload::value_variants().iter().filter(is_named).copied().collect();
    let driver = device(arguments.device)?;
    let info = driver.info();
    table.begin(console, format!("{} ({})", info.name, info.kind));
    let is_cuda = info.kind != DeviceKind::Simulated;
    let mut stacks = vec![arguments.stack.clone()];
    if is_cuda && info.features.memory_pool {
        stacks.push(Stack::new(kiln_mem::stack::Base::Pool));
    }
    for workload in &workloads {
        for stack in &stacks {
            // A simulated device gives addresses out only once, so each measurement has a new one.
            let open = || if is_cuda { Ok(driver.clone()) } else { simulated() };
            let subject = Subject { open: &open, stack, repeats: arguments.repeats };
            let measured = subject.measure(*workload, &mut |row| table.add(console, row));
            measured.map_err(memory_failure)?;
        }
    }
    if is_cuda {
        peers::measure(&workloads, arguments.repeats, table, console);
    } else {
        table.note(console, "the raw driver, cudarc and m6 need a GPU");
    }
    Ok(())
}

fn device(wanted: Where) -> Result<Arc<dyn Driver>, Failure> {
    let failed = |error: kiln::Error| (Exit::from(&error), error.to_string());
    let simulated = || simulated().map_err(memory_failure);
    let runtime = match wanted {
        Where::Sim => return simulated(),
        Where::Cuda => kiln::probe::require().map_err(failed)?,
        Where::Auto => {
            let policy = kiln::probe::policy().map_err(failed)?;
            match kiln::probe::prober().resolve(policy).map_err(failed)? {
                Some(runtime) if runtime.info().kind != DeviceKind::Simulated => runtime,
                _ => return simulated(),
            }
        }
    };
    Ok(Arc::clone(runtime.driver()))
}

fn simulated() -> kiln_mem::Result<Arc<dyn Driver>> {
    let config = MachineConfig::seeded(0).device(DeviceConfig::with_memory(SIMULATED_BYTES));
    Ok(Machine::new(config).device(0)?)
}

fn memory_failure(error: kiln_mem::Error) -> Failure {
    let exit = if error.refusal().is_some() || error.is_oom() { Exit::Absent } else { Exit::Fault };
    (exit, error.to_string())
}
