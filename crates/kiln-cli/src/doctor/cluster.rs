//! `kiln doctor --cluster`: the ranks of a job meet, say what they are, and rank 0 tells what does not fit together.
//!
//! ```text
//! launcher's variables ─► rendezvous ─► reports exchanged ─► clocks compared ─► a sum over all ranks ─► rank 0: table, disagreements
//! ```

mod clock_difference;
mod cluster_sum;
mod cluster_text;
mod disagreement;
mod not_met;
mod rank_report;

use std::time::Duration;

use kiln::Policy;
use kiln::group::{RankEnvironment, Rendezvous, RendezvousConfig};
use serde::Serialize;

use crate::console::Console;
use crate::exit_code::Exit;
use crate::failure::Failure;
use cluster_sum::SumResult;
use disagreement::Disagreement;
use not_met::{half_set, not_met};
use rank_report::{OpenedRank, RankReport};

/// What rank 0 prints.
#[derive(Serialize)]
pub(crate) struct ClusterReport {
    ranks: Vec<RankReport>,
    /// The time until all ranks were there, as rank 0 measured it.
    joined_ms: u64,
    sum: SumResult,
    disagreements: Vec<Disagreement>,
    exit: u8,
}

/// Runs the command as one rank.
pub(super) fn run(
    policy: Policy,
    time_limit: Duration,
    json: bool,
    console: &mut Console,
) -> Result<Exit, Failure> {
    let environment = match RankEnvironment::from_process() {
        Ok(Some(environment)) => environment,
        Ok(None) => return Err(no_launcher()),
        Err(error) => return Err(half_set(&error)),
    };
    let mut config = RendezvousConfig::from_environment(&environment).map_err(|error| not_met(&error))?;
    config.timeout = time_limit;
    let started = std::time::Instant::now();
    let job = Rendezvous::join(&config).map_err(|error| not_met(&error))?;
    let joined_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let opened = OpenedRank::open(policy, &environment);
    let mut ranks = exchange(&job, &opened.report)?;
    clock_difference::measure(&job, &mut ranks).map_err(|error| not_met(&error))?;
    let mut disagreements = disagreement::find(&ranks);
    let sum = cluster_sum::try_sum(&job, &ranks, opened.runtime.as_ref(), time_limit);
    // A rank that leaves early would be told as lost by those that still compute.
    let _ = job.barrier("doctor end");
    if job.rank() != 0 {
        return Ok(Exit::Done);
    }
    disagreements.extend(sum.disagreement());
    let exit = if disagreements.is_empty() { Exit::Done } else { Exit::Fault };
    let report = ClusterReport { ranks, joined_ms, sum, disagreements, exit: exit.code() };
    match json {
        true => console.json(&report)?,
        false => console.line(cluster_text::render(&report, console.columns())),
    }
    Ok(exit)
}

/// The reports of all ranks, by rank.
fn exchange(job: &Rendezvous, report: &RankReport) -> Result<Vec<RankReport>, Failure> {
    let text = serde_json::to_vec(report).map_err(|error| {
        let message = format!("the report of rank {} cannot be written as JSON: {error}", report.rank);
        Failure::fault(message)
            .next("report it as a mistake of kiln, with the output of `kiln doctor --json`")
    })?;
    let texts = job.exchange("doctor report", &text).map_err(|error| not_met(&error))?;
    let reports = texts.iter().flatten().map(|text| serde_json::from_slice(text));
    reports.collect::<Result<_, _>>().map_err(|error| {
        let message = format!("a rank has sent a report that this version does not read: {error}");
        Failure::fault(message).next("start the same version of kiln on all hosts")
    })
}

fn no_launcher() -> Failure {
    let message = "no launcher has started this process: neither KILN_RANK nor the variables of torchrun, Open MPI, MPICH, Slurm or Kubernetes are set";
    Failure::usage(message).next(
        "start it on every rank, such as `kiln launch -n 4 -- kiln doctor --cluster`, `srun -n 4 kiln doctor --cluster` or `torchrun --no-python … kiln doctor --cluster`",
    )
}
