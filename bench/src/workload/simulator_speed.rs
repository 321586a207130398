//! S1: how fast the simulated device runs PTX on one core, with its checks on and without them.
//!
//! The device is driven by a seed, so that one thread of the host runs all blocks, and the time is that thread's own: other work on
//! the machine does not count. Launches go through the runtime: with every check, with those a runtime has by default, and with none. The
//! executor over plain memory, with every check and with none, shows what the device adds.

use std::sync::Arc;

use kiln::{DeviceRuntime, RuntimeConfig, code::Source};
use kiln_kernels::{Case, cases};
use kiln_ptx::PtxModule;
use kiln_ptx::exec::{Checks, Entry, ExecProgram, LaunchShape, Options, SimpleMemory};
use kiln_sim::{Machine, MachineConfig, PtxEngine};

use crate::Failure;
use crate::result_table::Table;
use crate::timing::{Percentiles, thread_seconds};

const ELEMENTS: u32 = 1 << 20;
const THREADS: u32 = 256;
const LAUNCHES: usize = 4;

/// S1.
pub(crate) fn instructions(table: &mut Table, repeats: usize) -> Result<(), Failure> {
    let numbers: Vec<f32> = (0..ELEMENTS).map(|i| i as f32).collect();
    for (name, workload, blocks) in
        [("saxpy", "s1 saxpy", ELEMENTS / THREADS), ("block_sum", "s1 block sum", ELEMENTS / THREADS / 2)]
    {
        let case = cases().iter().find(|case| case.name == name).ok_or("the table lacks a kernel")?;
        let (alone, count) = executor(case, &numbers, blocks, repeats, Checks::NONE)?;
        let every = device(case, &numbers, blocks, repeats, count, Some(Checks::ALL))?;
        table.add_in("M/s", workload, "device, every check", every);
        let usual = device(case, &numbers, blocks, repeats, count, Some(Checks::default()))?;
        table.add_in("M/s", workload, "device, as by default", usual);
        table.add_in(
            "M/s",
            workload,
            "device, no check",
            device(case, &numbers, blocks, repeats, count, None)?,
        );
        let checked = executor(case, &numbers, blocks, repeats, Checks::ALL)?.0;
        table.add_in("M/s", workload, "executor, every check", checked);
        table.add_in("M/s", workload, "executor, no check", alone);
    }
    Ok(())
}

/// Millions of thread-instructions per second through the runtime; without checks, those of the device are off as well.
fn device(
    case: &Case,
    numbers: &[f32],
    blocks: u32,
    repeats: usize,
    count: u64,
    checks: Option<Checks>,
) -> Result<Percentiles, Failure> {
    let engine = PtxEngine::with_checks(checks.unwrap_or(Checks::NONE));
    let mut config = MachineConfig::seeded(0).engine(Arc::new(engine));
    if checks.is_none() {
        config.checks = kiln_sim::SimChecks::off();
    }
    let machine = Machine::new(config);
    let gpu = DeviceRuntime::from_driver(machine.device(0)?, RuntimeConfig::default())?;
    let kernel = gpu.kernel(Source::Ptx(case.source.ptx), case.entry)?;
    let (x, y) = (gpu.upload(numbers)?, gpu.upload(numbers)?);
    let mut rates = Vec::new();
    for _ in 0..repeats * LAUNCHES {
        let start = thread_seconds()?;
        let mut launch = gpu.launch(&kernel);
        launch.grid(blocks).block(THREADS);
        if case.name == "saxpy" {
            launch.value(2.0_f32);
        }
        launch.read(&x).read_write(&y).value(ELEMENTS);
        // SAFETY: a simulated device keeps kernels inside its own memory, whatever they do.
        unsafe { launch.submit() }?;
        gpu.synchronize()?;
        rates.push(count as f64 / (thread_seconds()? - start) / 1e6);
    }
    match machine.findings().first() {
        Some(finding) => Err(finding.to_string().into()),
        None => Ok(Percentiles::of(rates)),
    }
}

/// The same without a device, and how many thread-instructions a launch has.
fn executor(
    case: &Case,
    numbers: &[f32],
    blocks: u32,
    repeats: usize,
    checks: Checks,
) -> Result<(Percentiles, u64), Failure> {
    let program = ExecProgram::new(PtxModule::parse(case.source.ptx)?);
    let entry: Entry = program.entry(case.entry).ok_or("the table lacks a kernel")?;
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    let mut memory = SimpleMemory::new();
    let (x, y) = (memory.allocate_with(&bytes), memory.allocate_with(&bytes));
    let mut arguments = Vec::new();
    if case.name == "saxpy" {
        arguments.extend(2.0_f32.to_le_bytes());
        arguments.resize(8, 0);
    }
    arguments.extend([x, y].iter().flat_map(|address| address.to_le_bytes()));
    arguments.extend(ELEMENTS.to_le_bytes());
    let shape = LaunchShape::linear(blocks, THREADS);
    let options = Options { checks, ..Options::default() };
    let (mut rates, mut count) = (Vec::new(), 0);
    for _ in 0..repeats * LAUNCHES {
        let start = thread_seconds()?;
        let outcome = entry.launch(&shape, &arguments, &[], &memory, &options)?;
        count = outcome.counters.thread_instructions;
        rates.push(count as f64 / (thread_seconds()? - start) / 1e6);
    }
    Ok((Percentiles::of(rates), count))
}
