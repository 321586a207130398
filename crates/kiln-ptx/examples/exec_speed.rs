//! How fast kernels run without a GPU: saxpy and a block reduction over 2^20 elements, all default checks on.
//!
//! Prints thread-instructions per second of one core: `cargo run --release -p kiln-ptx --example exec_speed`. The best
//! of several runs counts, so that other work on the machine does not.

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::time::Instant;

use kiln_kernels::cases;
use kiln_ptx::PtxModule;
use kiln_ptx::exec::{Counters, Entry, ExecProgram, LaunchShape, Options, SimpleMemory};

const ELEMENTS: u32 = 1 << 20;
const REPEATS: usize = 20;

fn main() -> Result<(), Box<dyn Error>> {
    let mut memory = SimpleMemory::new();
    let numbers: Vec<u8> = (0..ELEMENTS).flat_map(|i| (i as f32).to_le_bytes()).collect();
    let (x, y) = (memory.allocate_with(&numbers), memory.allocate_with(&numbers));
    let sums = memory.allocate(u64::from(ELEMENTS / 512) * 4);
    let n = u64::from(ELEMENTS);

    let saxpy = pack(&[(u64::from(2.0f32.to_bits()), 4), (x, 8), (y, 8), (n, 4)]);
    measure("saxpy", LaunchShape::linear(ELEMENTS / 256, 256), &saxpy, &memory)?;
    let reduce = pack(&[(x, 8), (sums, 8), (n, 4)]);
    measure("block_sum", LaunchShape::linear(ELEMENTS / 512, 256), &reduce, &memory)
}

/// Values of so many bytes, each at its alignment.
fn pack(values: &[(u64, usize)]) -> Vec<u8> {
    let mut packed = Vec::new();
    for (value, bytes) in values {
        packed.resize(packed.len().next_multiple_of(*bytes), 0);
        packed.extend(&value.to_le_bytes()[..*bytes]);
    }
    packed
}

fn measure(
    name: &str,
    shape: LaunchShape,
    arguments: &[u8],
    memory: &SimpleMemory,
) -> Result<(), Box<dyn Error>> {
    let case = cases().iter().find(|case| case.name == name).ok_or("no such case")?;
    let program = ExecProgram::new(PtxModule::parse(case.source.ptx)?);
    let entry = program.entry(case.entry).ok_or("no such kernel")?;
    let mut best = f64::MAX;
    let mut counters = Counters::default();
    for _ in 0..REPEATS {
        let (seconds, counted) = run(&entry, shape, arguments, memory)?;
        best = best.min(seconds);
        counters = counted;
    }
    let rate = counters.thread_instructions as f64 / best / 1e6;
    println!(
        "{name:>10}: {rate:6.0} million thread-instructions per second and core, {:.0} ns per warp instruction",
        best * 1e9 / counters.warp_instructions as f64
    );
    Ok(())
}

fn run(
    entry: &Entry,
    shape: LaunchShape,
    arguments: &[u8],
    memory: &SimpleMemory,
) -> Result<(f64, Counters), Box<dyn Error>> {
    let start = Instant::now();
    let outcome = entry.launch(&shape, arguments, &[], memory, &Options::default())?;
    let seconds = start.elapsed().as_secs_f64();
    match outcome.findings.first() {
        Some(finding) => Err(finding.to_string().into()),
        None => Ok((seconds, outcome.counters)),
    }
}
