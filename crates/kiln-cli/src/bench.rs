//! `kiln bench`: the memory workloads and calls of libraries on this machine.
//!
//! A memory stack is measured next to the driver's own pool, both through the same calls. The raw driver and cudarc are measured by
//! the program `kiln-bench` if it is in the same folder, because this program has no bindings to CUDA. On the simulated device the
//! figures are the cost on the host, and its pool is not measured.

mod kiln_bench_process;
mod library_calls;
mod library_rows;
mod measure;
mod table;
mod workload;

use std::ops::RangeInclusive;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use kiln_driver::{DeviceKind, Driver};
use kiln_mem::Stack;
use kiln_sim::{DeviceConfig, Machine, MachineConfig, PtxEngine};

use crate::console::Console;
use crate::device_choice::Where;
use crate::exit_code::Exit;
use crate::failure::Failure;

use measure::Subject;
use table::Table;
use workload::{RowParser, Workload};

/// Memory of the simulated device; none of it is touched.
const SIMULATED_BYTES: u64 = 128 << 30;

const EXAMPLES: &str = "Examples:
  kiln bench
  kiln bench m1 m3 --repeats 9
  kiln bench m1..m5 --stack \"stats(heap)\" --json
  kiln bench l1..l9

m1  64 KiB allocated and freed, warm: nanoseconds
m2  blocks of random size and life: nanoseconds
m3  m1 on 1, 4, 8 and 16 threads: nanoseconds
m4  m2: reserved over live memory
m5  requests refused with nine tenths of a limit in use
m6  kernels that allocate on several streams (on a GPU, by kiln-bench)
m7  driver calls of a warm pair

l1  a product of two matrices of f32
l2  a product of two matrices of bf16
l3  a Fourier transform of complex f32
l4  a sort of u32
l5  a scan of u32
l6  normal random numbers of f32 (Philox)
l7  a sparse matrix of f32 times a vector
l8  a Cholesky factor of f64
l9  causal attention of f16

Of a library call two rows tell what it takes the host to submit it, in nanoseconds, and how long it takes until it is done where \
     many are queued, in microseconds; behind its name is its size. On the simulated device calls are small, and \
     are computed on the host.

`kiln replay --help` lists the parts of a stack. The raw driver and cudarc are measured by \
     `kiln-bench` if it is in the same folder (cargo build --release -p kiln-bench).

Exit codes: 0 measured, 2 wrong usage, 3 refused, 5 fault.";

/// The flags of `kiln bench`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The workloads, or a range such as `m1..m5`; all of them if none is named.
    #[arg(value_parser = RowParser)]
    workloads: Vec<RangeInclusive<Workload>>,
    /// The memory stack to measure, such as "budget(8GiB, stats(heap))".
    #[arg(long, default_value = "heap")]
    stack: Stack,
    /// Where to run; `auto` takes a GPU if there is one and the policy allows it, else the simulated device.
    #[arg(long, value_enum, default_value_t = Where::Auto)]
    device: Where,
    /// Repeats of each measurement; the median is reported.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeats: u32,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, console: &mut Console) -> Result<Exit, Failure> {
    let mut table = Table::new(arguments.json);
    perform(arguments, &mut table, console)?;
    if arguments.json {
        console.json(&table)?;
    }
    Ok(Exit::Done)
}

fn perform(arguments: &Arguments, table: &mut Table, console: &mut Console) -> Result<(), Failure> {
    let rows = &arguments.workloads;
    let is_named = |workload: &&Workload| rows.is_empty() || rows.iter().any(|row| row.contains(workload));
    let workloads: Vec<Workload> = Workload::value_variants().iter().filter(is_named).copied().collect();
    let (calls, workloads): (Vec<Workload>, Vec<Workload>) =
        workloads.into_iter().partition(|workload| workload.is_library_call());
    let driver = device(arguments.device)?;
    let info = driver.info();
    let is_cuda = info.kind != DeviceKind::Simulated;
    if !is_cuda && calls.is_empty() && workloads == [Workload::M6] {
        return Err(Failure::refused("m6 needs a GPU").next("`kiln doctor` says why none is used"));
    }
    table.begin(console, format!("{} ({})", info.name, info.kind));
    let mut stacks = vec![arguments.stack.clone()];
    if is_cuda && info.features.memory_pool {
        stacks.push(Stack::new(kiln_mem::resource_stack::StackBase::Pool));
    }
    for workload in &workloads {
        for stack in &stacks {
            // A simulated device never reuses addresses, so each measurement has a new device.
            let open = || if is_cuda { Ok(driver.clone()) } else { simulated() };
            let subject = Subject { open: &open, stack, repeats: arguments.repeats };
            let measured = subject.measure(*workload, &mut |row| table.add(console, row));
            measured.map_err(|error| Failure::of_memory(&error))?;
        }
    }
    if !calls.is_empty() {
        let driver =
            if is_cuda { driver } else { simulated().map_err(|error| Failure::of_memory(&error))? };
        library_rows::measure(&calls, driver, arguments.repeats, (table, console))?;
    }
    if workloads.is_empty() {
        return Ok(());
    }
    if is_cuda {
        kiln_bench_process::measure(&workloads, arguments.repeats, table, console);
    } else {
        table.note(console, "the raw driver, cudarc and m6 need a GPU");
    }
    Ok(())
}

fn device(wanted: Where) -> Result<Arc<dyn Driver>, Failure> {
    match wanted.gpu_driver()? {
        Some(driver) => Ok(driver),
        None => simulated().map_err(|error| Failure::of_memory(&error)),
    }
}

fn simulated() -> kiln_mem::Result<Arc<dyn Driver>> {
    let mut config = MachineConfig::seeded(0)
        .device(DeviceConfig::with_memory(SIMULATED_BYTES))
        .engine(Arc::new(PtxEngine::default()));
    // A stack tells a device that checks accesses where blocks begin and end, which is no call of a GPU's driver.
    config.checks.declarations = false;
    Ok(Machine::new(config).device(0)?)
}
