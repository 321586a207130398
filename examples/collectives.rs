//! Every collective, with the result that each rank must get.
//!
//! `cargo run -p kiln-group --example collectives` runs four simulated devices as four ranks. Started by a launcher on hosts with GPUs, each process is a rank
//! with the device of its local rank, and NCCL does the work:
//!
//! ```text
//! torchrun --nproc-per-node 4 --no-python target/debug/examples/collectives
//! ```
//!
//! With `--isolate` each rank has its device, and NCCL, in a worker process. With `--missing` the last rank does not call the last collective: the others are told at the
//! deadline which rank did not come. With `--graphs` each kind of collective is recorded in a graph that is replayed a hundred times.
//!
//! `kiln launch -n 4 --check -- target/debug/examples/collectives` runs the same processes on simulated devices, and checks them.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]

#[path = "collectives/graphs.rs"]
mod graphs;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kiln::group::{
    DeviceCommunicator, DeviceCommunicatorConfig, DeviceGroup, RankEnvironment, Reduction, Rendezvous,
    RendezvousConfig,
};
use kiln::probe::Policy;
use kiln::recovery::{DeviceSpec, Isolation, Process};
use kiln::sim::{DeviceConfig, Machine, MachineConfig, PtxEngine};
use kiln::{DeviceRuntime, GpuRef, RuntimeConfig};

type Failure = Box<dyn std::error::Error + Send + Sync>;

const COUNT: usize = 10_000;
/// How long a rank waits for one that does not come.
const MISSING_DEADLINE: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    // In a worker process this serves and never returns.
    kiln::worker_entry();
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("collectives: {}", with_causes(&*error));
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Failure> {
    match RankEnvironment::from_process()? {
        Some(ranks) => process(&ranks),
        None => simulated(4),
    }
}

/// This process is one rank.
fn process(ranks: &RankEnvironment) -> Result<(), Failure> {
    let started = Instant::now();
    let job = Arc::new(Rendezvous::join(&RendezvousConfig::from_environment(ranks)?)?);
    let local_rank = ranks.local_rank.unwrap_or(0);
    let gpu = match kiln::probe::policy()? {
        Policy::Simulate => DeviceRuntime::simulated(u64::from(ranks.rank))?,
        _ if is_asked("--isolate") => in_worker(local_rank)?,
        _ => DeviceRuntime::cuda(local_rank)?.clone(),
    };
    let config = match is_asked("--missing") {
        true => DeviceCommunicatorConfig { deadline: MISSING_DEADLINE },
        false => DeviceCommunicatorConfig::default(),
    };
    let rank = DeviceCommunicator::meet(&gpu, &job, &config)?;
    rank.barrier().submit()?.wait()?;
    println!("rank {}: ready after {} ms", rank.rank(), started.elapsed().as_millis());
    if is_asked("--missing") {
        missing(&rank)?;
    } else {
        called(&rank)?;
    }
    job.barrier("end")?;
    Ok(())
}

/// What the command line asks for, but for ranks that stay away.
fn called(rank: &DeviceCommunicator) -> Result<(), Failure> {
    if is_asked("--graphs") { graphs::in_graphs(rank) } else { collectives(rank) }
}

/// Whether the command line has the word.
fn is_asked(flag: &str) -> bool {
    std::env::args().any(|word| word == flag)
}

/// The last rank calls nothing. The others must be told of it, and keep their devices if these are GPUs.
fn missing(rank: &DeviceCommunicator) -> Result<(), Failure> {
    let late = rank.size() - 1;
    if rank.rank() == late {
        return Ok(());
    }
    let (kept, buffer) = (rank.runtime().upload(&[7_u32])?, rank.runtime().upload(&[1.0_f32; 4])?);
    let began = Instant::now();
    let answer = all_reduced(rank, &buffer);
    let Err(error) = answer else {
        return Err(format!("the all-reduce was done without rank {late}").into());
    };
    let (told, waited) = (with_causes(&*error), began.elapsed());
    println!("rank {}: told after {} ms: {told}", rank.rank(), waited.as_millis());
    if !told.contains(&format!("rank {late}")) {
        return Err(format!("rank {late} is not named").into());
    }
    println!(
        "rank {}: what it kept is {}",
        rank.rank(),
        if kept.download().is_ok_and(|kept| kept == [7]) { "there" } else { "lost" }
    );
    Ok(())
}

/// An all-reduce until it is done.
fn all_reduced(rank: &DeviceCommunicator, buffer: &GpuRef<f32>) -> Result<(), Failure> {
    rank.all_reduce_in_place(buffer, Reduction::Sum).submit()?.wait()?;
    Ok(())
}

/// The GPU in a worker process.
fn in_worker(ordinal: u32) -> kiln::Result<DeviceRuntime> {
    let isolation = Isolation::Process(Process::default());
    DeviceRuntime::open(&DeviceSpec::cuda(ordinal), RuntimeConfig { isolation, ..RuntimeConfig::default() })
}

/// All ranks are threads of this process, over simulated devices.
fn simulated(size: usize) -> Result<(), Failure> {
    let config = MachineConfig::seeded(1).engine(Arc::new(PtxEngine::default()));
    let config = (0..size).fold(config, |config, _| config.device(DeviceConfig::default()));
    let machine = Machine::new(config);
    let devices: Result<Vec<_>, _> = (0..size).map(|ordinal| machine.device(ordinal as u32)).collect();
    let group = DeviceGroup::over(devices?, &Default::default())?;
    let ranks = group.communicators(&Default::default())?;
    let threads: Vec<_> = ranks.into_iter().map(|rank| std::thread::spawn(move || called(&rank))).collect();
    for thread in threads {
        thread.join().map_err(|_| "a rank panicked")??;
    }
    Ok(())
}

/// What every rank does.
fn collectives(rank: &DeviceCommunicator) -> Result<(), Failure> {
    let (gpu, me, size) = (rank.runtime(), rank.rank(), rank.size());
    let block = |value: u32| vec![value as f32; COUNT];
    let blocks = |values: &[u32]| values.iter().flat_map(|value| block(*value)).collect::<Vec<f32>>();
    let all: Vec<u32> = (0..size).collect();
    let sum: u32 = all.iter().sum();

    // All ranks give their number.
    let (mine, result) = (gpu.upload(&block(me))?, gpu.zeros::<f32>(COUNT)?);
    rank.all_reduce(&mine, &result, Reduction::Sum).submit()?;
    check(rank, "all-reduce, sum", result.download()? == block(sum))?;
    rank.all_reduce(&mine, &result, Reduction::Max).submit()?;
    check(rank, "all-reduce, max", result.download()? == block(size - 1))?;
    rank.all_reduce(&mine, &result, Reduction::Average).submit()?;
    let average = sum as f32 / size as f32;
    check(rank, "all-reduce, average", result.download()?.iter().all(|got| (got - average).abs() < 1e-5))?;
    rank.reduce(&mine, (me == 0).then_some(&result), Reduction::Sum, 0).submit()?;
    check(rank, "reduce", me != 0 || result.download()? == block(sum))?;
    let sent = gpu.upload(&block(me + 7))?;
    rank.broadcast(&sent, size - 1).submit()?;
    check(rank, "broadcast", sent.download()? == block(size + 6))?;

    // One block of each rank, and one block for each rank.
    let many = gpu.zeros::<f32>(COUNT * size as usize)?;
    rank.all_gather(&mine, &many).submit()?;
    check(rank, "all-gather", many.download()? == blocks(&all))?;
    rank.reduce_scatter(&many, &result, Reduction::Sum).submit()?;
    check(rank, "reduce-scatter", result.download()? == block(me * size))?;
    let apart = gpu.upload(&blocks(&all.iter().map(|to| me * size + to).collect::<Vec<_>>()))?;
    rank.all_to_all(&apart, &many).submit()?;
    let expected: Vec<u32> = all.iter().map(|from| from * size + me).collect();
    check(rank, "all-to-all", many.download()? == blocks(&expected))?;
    rank.gather(&mine, (me == 1 % size).then_some(&many), 1 % size).submit()?;
    check(rank, "gather", me != 1 % size || many.download()? == blocks(&all))?;
    let whole = gpu.upload(&blocks(&all))?;
    rank.scatter((me == 0).then_some(&whole), &result, 0).submit()?;
    check(rank, "scatter", result.download()? == block(me))?;

    // Around in a ring; both in one group, so that none waits for the other. A rank does not send to itself.
    if size > 1 {
        let (next, before) = ((me + 1) % size, (me + size - 1) % size);
        rank.send(&mine, next).and(rank.recv(&result, before)).submit()?;
        check(rank, "send and receive", result.download()? == block(before))?;
    }

    // In a graph, replayed: each replay adds up once more. Simulated devices of several processes have no such graphs.
    let total = gpu.upload(&[1_u64; 8])?;
    let mut graph = gpu.graph();
    let recorded = rank.all_reduce_in_place(&total, Reduction::Sum).record(&mut graph);
    if let Err(error) = recorded {
        println!("rank {me}: {error}");
    } else {
        let graph = graph.build()?;
        for _ in 0..3 {
            graph.replay()?;
        }
        check(rank, "all-reduce in a graph", total.download()? == [u64::from(size).pow(3); 8])?;
    }

    // Even and odd ranks apart.
    if let Some(part) = rank.split(Some(me % 2), me)? {
        let number = gpu.upload(&[me])?;
        part.all_reduce_in_place(&number, Reduction::Sum).submit()?;
        let expected: u32 = all.iter().filter(|other| *other % 2 == me % 2).sum();
        check(rank, "split", number.download()? == [expected])?;
    }
    rank.barrier().submit()?.wait()?;
    Ok(())
}

fn check(rank: &DeviceCommunicator, what: &str, is_right: bool) -> Result<(), Failure> {
    match is_right {
        true if rank.rank() == 0 => println!("{what}: right on rank 0 of {}", rank.size()),
        true => {}
        false => return Err(format!("{what}: wrong on rank {}", rank.rank()).into()),
    }
    Ok(())
}

/// An error and what is behind it.
fn with_causes(error: &dyn std::error::Error) -> String {
    let (mut text, mut cause) = (error.to_string(), error.source());
    while let Some(error) = cause {
        let more = error.to_string();
        // Most errors say what is behind them.
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}
