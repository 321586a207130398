//! A program compiler's GPU backend, on kiln: the calls it makes, in the order it makes them.
//!
//! Such a compiler has kernels as data. It asks for a device, plans and compiles each kernel once, dispatches it on host data or on what lies
//! on the device already, in long sequences, until nothing changes any more, and it wants every edge defined and every failure told. Each
//! section is one of those conversations. The kernels follow edges of a call graph.
//!
//! `cargo run -p kiln --example compiler_backend` runs on the GPU where there is one, and on the simulated device otherwise.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use kiln::ir::{DeviceLimits, LaunchRequest};
use kiln::program::{Backend, Bindings, DispatchConfig, Program};
use kiln::program::{
    BindingPlan, Converge, LaunchPlan, Pipeline, PlanError, ProgramError, ProgramValue, Read, ReadWrite,
    Typed,
};
use kiln::telemetry::Count;

/// Which functions are reached, one call further: `seen[to]` where `seen[from]`. Other threads change `seen` meanwhile, so it is read
/// by an atomic that changes nothing.
const REACH: &str = "
kernel reach(in from: u32[], in to: u32[like from], inout seen: u32[], inout changed: u32[1]) block(64) over(from) {
    let e = global.x;
    if (e < len(from)) & (atomic_max(seen[from[e]], 0) != 0) {
        if atomic_max(seen[to[e]], 1) == 0 { atomic_max(changed[0], 1); }
    }
}";

/// A chain of calls, each to the next, with the last calling back.
const FUNCTIONS: u32 = 300;

type Outcome = Result<(), Box<dyn Error>>;

fn main() -> Outcome {
    // A handle that is cheap to clone and works from any thread; nothing of the environment is changed.
    let backend = Backend::acquire()?;
    let elsewhere = backend.clone();
    std::thread::spawn(move || elsewhere.runtime().info().name.clone()).join().map_err(|_| "no name")?;
    println!("{backend:?}");

    programs()?;
    plans()?;
    let reach = compile(&backend)?;
    dispatch(&reach)?;
    typed(&backend)?;
    sequence(&backend, &reach)?;
    until_nothing_changes(&reach)?;
    all_blocks_together(&backend)?;
    graph(&backend)?;
    edges_of_meaning(&backend)?;
    failures(&backend)?;
    telemetry(&backend)
}

fn calls() -> (Vec<u32>, Vec<u32>) {
    ((0..FUNCTIONS).collect(), (0..FUNCTIONS).map(|at| (at + 1) % FUNCTIONS).collect())
}

fn only_the_first() -> Vec<u32> {
    (0..FUNCTIONS).map(|at| u32::from(at == 0)).collect()
}

/// Programs are values: built in Rust or read from text, verified once, with the place of what is wrong.
fn programs() -> Outcome {
    let built = Program::build("twice", |k| {
        let x = k.in_out::<u32>("x");
        k.over(x);
        x.store(k.global_x(), x.load(k.global_x()) * 2u32);
    })?;
    assert_eq!(Program::parse(&built.to_string())?, built);
    let wrong = Program::parse("kernel wrong(inout x: u32[]) block(32) over(x) {\n    x[0] = x[0] + 1.5;\n}");
    println!("not verified: {}", wrong.err().ok_or("a sum of two types was accepted")?);
    Ok(())
}

/// How long each buffer is and how many blocks there are: pure host code, with 64-bit lengths.
fn plans() -> Outcome {
    let reach = Program::parse(REACH)?;
    let bindings =
        BindingPlan::new(&reach, &[("from", 4 << 33), ("to", 4 << 33), ("seen", 40), ("changed", 4)])?;
    assert_eq!(bindings.bindings[1].length, 1 << 33);
    let launch = LaunchPlan::new(&reach, &bindings, &LaunchRequest::default(), &DeviceLimits::default())?;
    assert_eq!(launch.grid, [1 << 27, 1, 1]);
    let missing = BindingPlan::new(&reach, &[("from", 40), ("to", 40)]);
    assert!(matches!(missing, Err(PlanError::Missing { buffer, .. }) if buffer == "seen"));
    Ok(())
}

/// Compiled once; later calls get the same pipeline.
fn compile(backend: &Backend) -> Result<Arc<Pipeline>, Box<dyn Error>> {
    let program = Program::parse(REACH)?;
    let (first, second) = (backend.compile(&program)?, backend.compile(&program)?);
    assert!(Arc::ptr_eq(&first, &second));
    println!("compiled: {first:?}, {:?}", backend.runtime().code_counters());
    Ok(first)
}

/// Host data, borrowed; results into the caller's vectors, or returned; or some of it on the device.
fn dispatch(reach: &Pipeline) -> Outcome {
    let (from, to) = calls();
    let mut seen = only_the_first();
    let given = || Bindings::new().input("from", &from).input("to", &to).input("changed", &[0u32]);
    let mut done = reach.dispatch(given().in_out("seen", &mut seen))?;
    assert_eq!((seen[1], done.outputs.take::<u32>("changed")?), (1, vec![1]));

    let gpu = reach.backend().runtime();
    let resident = gpu.upload(&only_the_first())?;
    reach.dispatch(given().resident("seen", &resident))?;
    assert_eq!(resident.view(..2)?.download()?, [1, 1]);
    Ok(())
}

/// Where the parameters are known when the code is written, the compiler checks them.
fn typed(backend: &Backend) -> Outcome {
    type Reach = (Read<u32>, Read<u32>, ReadWrite<u32>, ReadWrite<u32>);
    let reach: Typed<Reach> = backend.compile_typed(&Program::parse(REACH)?)?;
    let (from, to) = calls();
    let (mut seen, mut changed) = (only_the_first(), vec![0]);
    reach.dispatch((&from, &to, &mut seen, &mut changed))?;
    assert_eq!(changed, [1]);
    let other = backend.compile_typed::<(Read<u32>, ProgramValue<f32>)>(&Program::parse(REACH)?);
    println!("another type: {}", other.err().ok_or("other parameters were accepted")?);
    Ok(())
}

/// Fills, uploads, steps, repeats and reads of ranges: one submission, one wait.
fn sequence(backend: &Backend, reach: &Pipeline) -> Outcome {
    let gpu = backend.runtime();
    let (from, to) = calls();
    let (dfrom, dto) = (gpu.upload(&from)?, gpu.upload(&to)?);
    let (seen, changed) = (gpu.allocate::<u32>(FUNCTIONS as usize)?, gpu.allocate::<u32>(1)?);
    let mut near = Vec::new();
    let mut sequence = backend.sequence();
    sequence.fill(&seen, 0)?.upload(&seen.view(..1)?, &[1])?.fill(&changed, 0)?;
    sequence.repeat(3, |turn| {
        let given = Bindings::new().resident("from", &dfrom).resident("to", &dto);
        turn.step(reach, given.resident("seen", &seen).resident("changed", &changed))?;
        Ok(())
    })?;
    sequence.read(&seen.view(..4)?, &mut near)?;
    let before = gpu.telemetry().snapshot();
    sequence.run()?;
    assert_eq!(near, [1; 4]);
    let seen = gpu.telemetry().snapshot().since(&before);
    println!(
        "a sequence: {} launches, {} host waits",
        seen.count(Count::Launches),
        seen.count(Count::HostWaits)
    );
    Ok(())
}

/// Steps until a flag of the device says that nothing changed; the host looks now and then, not after each.
fn until_nothing_changes(reach: &Pipeline) -> Outcome {
    let (from, to) = calls();
    let mut seen = only_the_first();
    let given = Bindings::new().input("from", &from).input("to", &to).input("changed", &[0u32]);
    let converge = Some(Converge { flag: "changed".into(), limit: 10_000 });
    let config = DispatchConfig { converge, ..DispatchConfig::default() };
    let done = reach.dispatch_with(given.in_out("seen", &mut seen), &config)?;
    assert_eq!(seen, vec![1; FUNCTIONS as usize]);
    println!("every function is reached after at most {FUNCTIONS} steps; {} ran", done.steps);
    Ok(())
}

/// A barrier of the whole grid, in a loop; refused where the blocks cannot all be resident.
fn all_blocks_together(backend: &Backend) -> Outcome {
    let program = Program::parse(
        "kernel rounds(inout x: u32[], n: u32) block(128) over(x) {
            for turn in 0..n {
                let next = x[(global.x + 1) % len(x)];
                barrier grid;
                x[global.x] = next;
                barrier grid;
            }
        }",
    )?;
    let rounds = backend.compile(&program)?;
    let mut x: Vec<u32> = (0..512).collect();
    rounds.dispatch(Bindings::new().in_out("x", &mut x).scalar("n", 5u32))?;
    assert_eq!(x[..3], [5, 6, 7]);
    let config = DispatchConfig { grid: Some(1_000_000.into()), ..DispatchConfig::default() };
    let refused = rounds.dispatch_with(Bindings::new().in_out("x", &mut x).scalar("n", 1u32), &config);
    match refused.err().as_ref().map(kiln::Error::downcast_ref) {
        Some(Some(ProgramError::CooperativeResidencyExceeded { blocks, limit, .. })) => {
            println!("{blocks} blocks do not fit, {limit} would");
            Ok(())
        }
        other => Err(format!("expected a refusal, got {other:?}").into()),
    }
}

/// A sequence recorded once and replayed; it computes anew each time.
fn graph(backend: &Backend) -> Outcome {
    let gpu = backend.runtime();
    let twice = backend.compile(&Program::parse(
        "kernel twice(inout x: u32[]) block(64) over(x) { x[global.x] = x[global.x] * 2; }",
    )?)?;
    let x = gpu.upload(&[1u32, 2, 3])?;
    let mut sequence = backend.sequence();
    sequence.repeat(3, |turn| turn.step(&twice, Bindings::new().resident("x", &x)).map(drop))?;
    let graph = sequence.build()?;
    graph.replay()?;
    graph.replay()?;
    assert_eq!(x.download()?, [64, 128, 192]);
    println!("replayed: {graph:?}");
    Ok(())
}

/// Every edge has a meaning, the same everywhere.
fn edges_of_meaning(backend: &Backend) -> Outcome {
    let program = Program::parse(
        "kernel edges(in x: i32[], out y: i32[6]) block(1) {
            y[0] = x[99];
            y[99] = 7;
            y[1] = x[0] / x[1];
            y[2] = x[2] / -1;
            y[3] = i32(f32(x[2]) * -4.0);
            y[4] = x[0] << 40;
            y[5] = -x[0] >> 1;
        }",
    )?;
    let config = DispatchConfig { grid: Some(1.into()), ..DispatchConfig::default() };
    let edges = backend.compile(&program)?;
    let mut done = edges.dispatch_with(Bindings::new().input("x", &[7, 0, i32::MIN]), &config)?;
    println!(
        "out of range, x/0, MIN/-1, too large, shifted out, shifted: {:?}",
        done.outputs.take::<i32>("y")?
    );
    Ok(())
}

/// A trap says who and why, a time-out is a time-out; host vectors are as they were, resident buffers say that they are in doubt.
fn failures(backend: &Backend) -> Outcome {
    let text = "kernel guard(inout x: u32[]) block(32) over(x) { if x[global.x] == 9 { trap(4); } x[global.x] = 0; }";
    let guard = backend.compile(&Program::parse(text)?)?;
    let x = backend.runtime().upload(&[1u32, 9, 1])?;
    let config = DispatchConfig { label: Some("audit".into()), ..DispatchConfig::default() };
    let trapped = guard.dispatch_with(Bindings::new().resident("x", &x), &config);
    println!("{}", trapped.err().ok_or("a trap was lost")?);
    assert!(!x.is_trusted());
    x.upload(&[1, 1, 1])?;
    assert!(x.is_trusted());
    let config = DispatchConfig { timeout: Some(Duration::from_secs(60)), ..DispatchConfig::default() };
    guard.dispatch_with(Bindings::new().resident("x", &x), &config)?;
    assert_eq!(x.download()?, [0; 3]);
    Ok(())
}

/// Counts, device time apart from host time, and a page for a scraper.
fn telemetry(backend: &Backend) -> Outcome {
    let gpu = backend.runtime();
    let twice = backend.compile(&Program::parse(
        "kernel twice(inout x: u32[]) block(64) over(x) { x[global.x] = x[global.x] * 2; }",
    )?)?;
    let config = DispatchConfig { profile: true, ..DispatchConfig::default() };
    let mut x = vec![1u32; 1000];
    let done = twice.dispatch_with(Bindings::new().in_out("x", &mut x), &config)?;
    let timing = done.timing.ok_or("no time was taken")?;
    assert!(timing.device > Duration::ZERO && timing.device <= timing.wall);
    let page = gpu.telemetry().snapshot().prometheus();
    let launches = page.lines().find(|line| line.starts_with("kiln_launches_total")).ok_or("no launches")?;
    println!("{launches}");
    gpu.telemetry().reset();
    assert_eq!(gpu.telemetry().snapshot().count(Count::Launches), 0);
    println!("every promise of a program kept");
    Ok(())
}
