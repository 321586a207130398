//! A rank is killed while a thousand all-reduces are queued: the others are told within a second, lose nothing else, and go on.
//!
//! `cargo run -p kiln-group --example killed_rank -- --ranks 3 --jobs 4` runs four jobs of three ranks. Each starts its ranks as processes, all on the first GPU, or on simulated
//! devices if `KILN_POLICY=simulate` is set. NCCL refuses ranks of one host that share a GPU, so every rank is given
//! another host. When the victim has done a number of all-reduces that follows from the seed, it is killed by SIGKILL. Every survivor then shows that
//!
//! - it was told at most a second after the kill, with an error that names the victim,
//! - every block that no unfinished collective was to write holds the bytes it had,
//! - the ranks make a communicator without the victim (even seeds) or with a replacement (odd seeds), and all-reduces in it give the right sums.
//!
//! `--ranks N` (2 unless given), `--jobs N` (1), `--seed N` for the first job (0), `--collectives N` (1000), and `--isolate` for a worker process for the device, and NCCL, of each rank.
//! The last line counts. The program ends with 1 if anything was bad.
//!
//! The files in reading order: `main`, `job` (starts and kills), `rank` (what a rank does and checks), `plan` (what follows from a seed).

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example shows what it does")]
#![allow(unreachable_pub, reason = "what a module shows to the others is `pub`, as in a library")]

mod job;
mod plan;
mod rank;

use std::process::ExitCode;
use std::time::Duration;

use job::JobReport;
use kiln::group::RankEnvironment;
use plan::Plan;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// No survivor may wait longer.
const LIMIT: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    // In a worker process this serves and never returns.
    kiln::worker_entry();
    let ended = match RankEnvironment::from_process() {
        Ok(Some(ranks)) => Plan::from_words(std::env::args().skip(1))
            .and_then(|plan| rank::run(&ranks, &plan))
            .map(|()| ExitCode::SUCCESS),
        Ok(None) => Plan::from_words(std::env::args().skip(1)).map(|plan| jobs(&plan)),
        Err(error) => Err(error.into()),
    };
    ended.unwrap_or_else(|error| {
        eprintln!("killed_rank: {}", with_causes(&*error));
        ExitCode::FAILURE
    })
}

/// Runs all jobs, and counts.
fn jobs(first: &Plan) -> ExitCode {
    let (mut good, mut told, mut blocks, mut latest) = (0, 0, 0, Duration::ZERO);
    let (mut without, mut replaced) = (0, 0);
    for number in 0..first.jobs {
        let plan = Plan { seed: first.seed + number, ..*first };
        match job::run(&plan) {
            Ok(JobReport { told: times, blocks: intact }) => {
                let worst = times.iter().max().copied().unwrap_or_default();
                let end = if plan.is_replaced() { "replaced" } else { "left out" };
                println!(
                    "seed {}: rank {} of {} killed after {} of {} all-reduces and {end}: told after {} ms",
                    plan.seed,
                    plan.victim(),
                    plan.ranks,
                    plan.done_at_kill(),
                    plan.collectives,
                    worst.as_millis()
                );
                good += 1;
                told += times.len();
                blocks += intact;
                latest = latest.max(worst);
                match plan.is_replaced() {
                    true => replaced += 1,
                    false => without += 1,
                }
            }
            Err(error) => println!("seed {}: bad: {}", plan.seed, with_causes(&*error)),
        }
    }
    let bad = first.jobs - good;
    println!(
        "{good} good, {bad} bad: {told} survivors told at most {} ms after the kill, {blocks} other blocks intact, jobs that went on: {without} without the rank, {replaced} with a replacement",
        latest.as_millis()
    );
    if bad == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// An error and what is behind it.
fn with_causes(error: &dyn std::error::Error) -> String {
    let (mut text, mut cause) = (error.to_string(), error.source());
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}
