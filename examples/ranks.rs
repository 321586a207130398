//! Ranks of a job meet, say who they are, and notice when one of them dies.
//!
//! Start it by `torchrun`, `srun`, `mpirun` or an indexed Kubernetes Job, or by hand with `cargo run -p kiln-group --example ranks`, once for each rank:
//!
//! ```text
//! KILN_RANK=0 KILN_WORLD_SIZE=2 KILN_MEETING_POINT=127.0.0.1:29600 cargo run -p kiln-group --example ranks &
//! KILN_RANK=1 KILN_WORLD_SIZE=2 KILN_MEETING_POINT=127.0.0.1:29600 cargo run -p kiln-group --example ranks
//! ```
//!
//! With `--until-loss` it stays until a rank is lost, and then goes on with the others.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use kiln::DeviceRuntime;
use kiln::group::{RankEnvironment, Rendezvous, RendezvousConfig};

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ranks: {}", with_causes(&*error));
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Failure> {
    let Some(ranks) = RankEnvironment::from_process()? else {
        println!("no launcher has started this process: see the top of examples/ranks.rs");
        return Ok(());
    };
    let started = Instant::now();
    let job = Rendezvous::join(&RendezvousConfig::from_environment(&ranks)?)?;
    let (rank, size) = (job.rank(), job.size());
    println!(
        "rank {rank} of {size}: all there after {} ms ({})",
        started.elapsed().as_millis(),
        ranks.launcher
    );

    // Each rank computes its part on its own device, and the sum is made of what all of them say.
    let gpu = DeviceRuntime::simulated(u64::from(rank))?;
    let part: u32 = gpu.upload(&[rank + 1; 100])?.download()?.iter().sum();
    let parts = job.exchange("parts", &part.to_le_bytes())?;
    let sum: u32 =
        parts.iter().flatten().filter_map(|part| Some(u32::from_le_bytes(part[..].try_into().ok()?))).sum();
    println!("rank {rank}: the sum of all parts is {sum}");

    if std::env::args().any(|argument| argument == "--until-loss") {
        let Some(lost) = job.wait_for_loss(Duration::from_secs(60))? else {
            return Err("no rank was lost".into());
        };
        println!("rank {rank}: rank {} is lost: {}", lost.rank, lost.cause);
        job.acknowledge_losses();
        let left = job.exchange("left", &[])?.iter().flatten().count();
        println!("rank {rank}: {left} ranks go on");
    }
    job.barrier("end")?;
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
