//! `kiln doctor`: whether this machine can run kernels, and what to install or repair.

mod check;
mod cluster;
mod examination;
#[cfg(target_os = "linux")]
mod isolation;
#[cfg(not(target_os = "linux"))]
#[path = "doctor/isolation_unsupported.rs"]
mod isolation;
mod library_cost;
#[cfg(target_os = "linux")]
mod library_loading;
#[cfg(not(target_os = "linux"))]
#[path = "doctor/library_loading_unsupported.rs"]
mod library_loading;
#[cfg(target_os = "linux")]
pub(crate) mod load_library;
mod text;

use std::time::Duration;

use clap::Args;
use kiln::Policy;

use crate::console::Console;
use crate::exit_code::Exit;
use crate::failure::Failure;

use examination::Examination;

/// The flags of `kiln doctor`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// What the machine must have; by default the value of KILN_POLICY, or else `auto`.
    #[arg(long, value_name = "off|auto|required|simulate")]
    policy: Option<Policy>,
    /// Examine all ranks of a job together: start the command on each of them, by a launcher.
    #[arg(long)]
    cluster: bool,
    /// How many seconds the ranks of --cluster have to come, at most an hour.
    #[arg(long, value_name = "S", requires = "cluster", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    time_limit: u64,
}

const EXAMPLES: &str = "Examples:
  kiln doctor
  kiln doctor --policy required --json
  kiln launch -n 4 -- kiln doctor --cluster

The first line says whether you can work, and on which device. Below it are the driver, the \
     GPUs, NVIDIA's libraries and process isolation, each with what to do if something is wrong.

Policies: auto uses a GPU if there is one and else the simulated device, required needs a GPU, \
     simulate uses the simulated device only, off gives programs no device. Under off the commands \
     run, check and demo use the simulated device.

With --cluster every rank of a job joins the others within --time-limit. Rank 0 prints one \
     table: host, device, driver, NCCL, kiln, clock and launcher of each rank, what does not fit \
     together, and a sum over all ranks with its time. It ends with 5 if something does not fit or a \
     rank is missing.

Exit codes: 0 the machine has what the policy needs, 2 wrong usage, 3 a GPU is needed and \
     missing, 5 something is there and does not work.";

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, console: &mut Console) -> Result<Exit, Failure> {
    let policy = arguments.policy.map_or_else(kiln::probe::policy, Ok)?;
    if arguments.cluster {
        let time_limit = Duration::from_secs(arguments.time_limit);
        return cluster::run(policy, time_limit, arguments.json, console);
    }
    let examination = Examination::of_this_machine(policy);
    if arguments.json {
        console.json(&examination)?;
    } else {
        let text = text::render(&examination, console.columns(), console.colours());
        console.line(text);
    }
    Ok(examination.exit())
}
