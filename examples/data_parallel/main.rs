//! Data-parallel training: the same losses to the last bit on one, two and four ranks.
//!
//! `cargo run -p kiln-libs --example data_parallel -- 4` trains a small perceptron on four simulated devices, each the rank of a thread. Started by a launcher on hosts with
//! GPUs, each process is a rank with the device of its local rank, and NCCL carries the data:
//!
//! ```text
//! torchrun --nproc-per-node 4 --no-python target/debug/examples/data_parallel
//! ```
//!
//! `kiln launch -n 4 --check -- target/debug/examples/data_parallel` runs the same processes on simulated devices, and checks them.
//!
//! A batch has twelve shards whatever the number of ranks. Each rank computes the gradients of its shards, all gather those of all shards, and each adds them in the order
//! of the shards. An all-reduce would move less, but adds in an order that depends on the number of ranks: on the simulator in the order of the ranks, with NCCL in one that
//! NCCL chooses. A gather adds nothing, so the losses are the same with NCCL too, as far as the products of one shard are: on devices of one kind with one version of cuBLAS.
//!
//! With `--kill-rank R --at-step S` a rank ends in the middle: its thread panics, or its process is aborted. The others are told, make a communicator without it, share its
//! shards, and give the same losses. With NCCL the others abort their communicator, which ends a collective that runs already.
//!
//! The files in reading order: `task`, `model`, `main`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]
#![allow(unreachable_pub, reason = "what a module shows to the others is `pub`, as in a library")]

mod model;
mod task;

use std::process::ExitCode;
use std::sync::Arc;

use kiln::DeviceRuntime;
use kiln::group::{
    DeviceCommunicator, DeviceGroup, GroupError, RankEnvironment, Reduction, Rendezvous, RendezvousConfig,
};
use kiln::probe::Policy;
use kiln::sim::{DeviceConfig, Machine, MachineConfig, PtxEngine};
use model::Model;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Steps of training.
const STEPS: usize = 12;

/// Which rank ends at which step, and how.
#[derive(Clone, Copy)]
struct Kill {
    rank: u32,
    step: usize,
    end: fn(),
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("data_parallel: {}", with_causes(&*error));
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (size, flags) = match arguments.split_first() {
        Some((size, flags)) if !size.starts_with("--") => (Some(size.parse::<u32>()?), flags),
        _ => (None, &*arguments),
    };
    match RankEnvironment::from_process()? {
        Some(ranks) if size.is_some_and(|size| size != ranks.size) => {
            Err(format!("the job has {} ranks; give that number, or none", ranks.size).into())
        }
        Some(ranks) => process(&ranks, kill(flags, ranks.size, || std::process::abort())?),
        None => {
            let size = size.unwrap_or(1);
            let end = || std::panic::resume_unwind(Box::new("this rank is to end"));
            threads(size, kill(flags, size, end)?)
        }
    }
}

/// What the flags say: nothing, or which of so many ranks ends at which step.
fn kill(flags: &[String], size: u32, end: fn()) -> Result<Option<Kill>, Failure> {
    let (mut rank, mut step) = (None, None);
    for flag in flags.chunks(2) {
        match flag {
            [name, value] if name == "--kill-rank" && rank.is_none() => rank = Some(value.parse::<u32>()?),
            [name, value] if name == "--at-step" && step.is_none() => step = Some(value.parse::<usize>()?),
            _ => {
                let what = flag.join(" ");
                return Err(format!("`{what}` is not understood; give a number of ranks, and --kill-rank R --at-step S to end one").into());
            }
        }
    }
    match (rank, step) {
        (None, None) => Ok(None),
        (Some(rank), Some(_)) if rank >= size => {
            Err(format!("there is no rank {rank} among {size} to end; ranks count from 0").into())
        }
        (Some(_), Some(_)) if size == 1 => {
            Err("no rank would be left after the only one has ended; give two ranks or more".into())
        }
        (Some(_), Some(step)) if step >= STEPS => {
            Err(format!("there is no step {step} among {STEPS}; steps count from 0").into())
        }
        (Some(rank), Some(step)) => Ok(Some(Kill { rank, step, end })),
        _ => Err("--kill-rank and --at-step belong together; give both".into()),
    }
}

/// All ranks are threads of this process, over simulated devices.
fn threads(size: u32, kill: Option<Kill>) -> Result<(), Failure> {
    let config = MachineConfig::seeded(1).engine(Arc::new(PtxEngine::default()));
    let config = (0..size).fold(config, |config, _| config.device(DeviceConfig::default()));
    let machine = Machine::new(config);
    let devices: Result<Vec<_>, _> = (0..size).map(|ordinal| machine.device(ordinal)).collect();
    let group = DeviceGroup::over(devices?, &Default::default())?;
    let ranks = group.communicators(&Default::default())?;
    let threads: Vec<_> =
        ranks.into_iter().map(|rank| std::thread::spawn(move || train(rank, kill))).collect();
    for (rank, thread) in (0..).zip(threads) {
        match thread.join() {
            Ok(trained) => trained?,
            Err(_) if kill.is_some_and(|kill| kill.rank == rank) => {}
            Err(_) => return Err(format!("rank {rank} panicked").into()),
        }
    }
    Ok(())
}

/// This process is one rank.
fn process(ranks: &RankEnvironment, kill: Option<Kill>) -> Result<(), Failure> {
    let job = Arc::new(Rendezvous::join(&RendezvousConfig::from_environment(ranks)?)?);
    let gpu = match kiln::probe::policy()? {
        Policy::Simulate => DeviceRuntime::simulated(u64::from(ranks.rank))?,
        _ => DeviceRuntime::cuda(ranks.local_rank.unwrap_or(0))?.clone(),
    };
    train(DeviceCommunicator::meet(&gpu, &job, &Default::default())?, kill)?;
    job.barrier("end")?;
    Ok(())
}

/// What every rank does.
fn train(mut rank: DeviceCommunicator, kill: Option<Kill>) -> Result<(), Failure> {
    let first_rank = rank.rank();
    let model = Model::new(rank.runtime())?;
    let mut losses = Vec::new();
    loop {
        let step = losses.len();
        let queued = || {
            if let Some(kill) = kill.filter(|kill| (kill.rank, kill.step) == (first_rank, step)) {
                (kill.end)();
            }
        };
        // No rank leaves before all are done: a rank that is lost at the last step needs the others once more.
        let done = match step < STEPS {
            true => model.step(&rank, step, queued).map(Some),
            false => all_done(&rank).map(|()| None),
        };
        match done {
            Ok(Some(loss)) => losses.push(loss),
            Ok(None) => break,
            Err(error) => {
                let Some(lost) = rank.lost_rank() else { return Err(error.into()) };
                rank = rank.rebuild()?.communicator;
                model.renew()?;
                // Some may be done with a step that others are not.
                losses.truncate(earliest(&rank, step)?);
                if rank.rank() == 0 {
                    let (left, cause) = (rank.size(), lost.cause);
                    println!("rank {} is lost ({cause}); {left} go on from step {}", lost.rank, losses.len());
                }
            }
        }
    }
    if rank.rank() == 0 {
        for (step, loss) in losses.iter().enumerate() {
            println!("step {step}: loss {loss:?} (bits {:08x})", loss.to_bits());
        }
    }
    Ok(())
}

/// Waits until all ranks have done all steps.
fn all_done(rank: &DeviceCommunicator) -> Result<(), GroupError> {
    rank.barrier().submit()?.wait().map_err(|source| GroupError::Rank { rank: rank.rank(), source })
}

/// The first step that a rank has still to do.
fn earliest(rank: &DeviceCommunicator, step: usize) -> Result<usize, GroupError> {
    let failed = |source| GroupError::Rank { rank: rank.rank(), source };
    let first = rank.runtime().upload(&[step as u64]).map_err(failed)?;
    rank.all_reduce_in_place(&first, Reduction::Min).submit()?;
    Ok(first.download().map_err(failed)?.first().map_or(step, |first| *first as usize))
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
