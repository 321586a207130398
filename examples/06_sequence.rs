//! 06: many steps, one submission, one wait. Heat spreads along a rod that stays on the device.
//!
//! `cargo run -p kiln --example 06_sequence`, with a GPU or without one.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use kiln::{
    DeviceRuntime,
    program::{Backend, Bindings, Program},
};

const CELLS: usize = 64;
const STEPS: usize = 40;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A load outside of a buffer gives zero, so the ends of the rod are cold without a word about them.
    let spread = Program::build("spread", |k| {
        k.block([64, 1, 1]);
        let (from, to) = (k.input::<f32>("from"), k.output::<f32>("to"));
        to.like(from);
        k.over(to);
        let i = k.global_x();
        let around = from.load(i - 1u64) + from.load(i + 1u64);
        to.store(i, from.load(i) * 0.5f32 + around * 0.25f32);
    })?;
    let runtime = DeviceRuntime::auto()?.clone();
    let backend = Backend::over(runtime.clone());
    let spread = backend.compile(&spread)?;

    let mut rod = vec![0.0f32; CELLS];
    rod[CELLS / 2] = 100.0;
    let (a, b) = (runtime.allocate::<f32>(CELLS)?, runtime.allocate::<f32>(CELLS)?);
    let mut result = Vec::new();
    let mut sequence = backend.sequence();
    sequence.upload(&a, &rod)?;
    for step in 0..STEPS {
        let (from, to) = if step % 2 == 0 { (&a, &b) } else { (&b, &a) };
        sequence.step(&spread, Bindings::new().resident("from", from).resident("to", to))?;
    }
    sequence.read(&a, &mut result)?;
    sequence.run()?;

    for _ in 0..STEPS {
        let at = |index: Option<usize>| index.and_then(|index| rod.get(index)).copied().unwrap_or(0.0);
        rod = (0..CELLS).map(|i| rod[i] * 0.5 + (at(i.checked_sub(1)) + at(Some(i + 1))) * 0.25).collect();
    }
    assert_eq!(result, rod, "the device and the host do the same operations in the same order");
    for heat in result.iter().skip(CELLS / 4).take(CELLS / 2).step_by(2) {
        println!("{}", "█".repeat((heat * 4.0) as usize));
    }
    println!("{STEPS} steps in one submission, {CELLS} cells are right");
    Ok(())
}
