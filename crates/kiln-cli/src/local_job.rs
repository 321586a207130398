//! `kiln launch`: starts the ranks of a program on this host.
//!
//! ```text
//! flags ─► devices, port, token ─► one process for each rank ─► supervisor: output, signals, failures, restarts ─► exit status
//! ```
//!
//! Every rank is the leader of a process group, so that signals reach what it started, too, and a terminal's Ctrl-C reaches only this command, which
//! passes it on. The kernel kills a rank when this command ends without ending it (`PR_SET_PDEATHSIG`).

mod device_list;
mod job_folder;
mod job_token;
mod meeting_port;
mod rank_faults;
mod rank_findings;
mod rank_variables;

#[cfg(target_os = "linux")]
mod failure_order;
#[cfg(target_os = "linux")]
mod output_lines;
#[cfg(target_os = "linux")]
mod rank_end;
#[cfg(target_os = "linux")]
mod rank_list;
#[cfg(target_os = "linux")]
mod rank_process;
#[cfg(target_os = "linux")]
mod seen_ends;
#[cfg(target_os = "linux")]
mod supervisor;
#[cfg(not(target_os = "linux"))]
#[path = "local_job/supervisor_unsupported.rs"]
mod supervisor;

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;

use crate::console::complain;
use crate::exit_code::Exit;
use crate::failure::Failure;
use crate::recorded_run;
use device_list::DeviceList;
use job_folder::JobFolder;
use rank_faults::RankFaults;
use rank_findings::RankFindings;
use rank_variables::JobVariables;

/// The most ranks that one command starts.
const MAX_RANKS: u32 = 256;
/// The most seconds of a flag: a year.
const MAX_SECONDS: f64 = 31_536_000.0;

/// The flags of `kiln launch`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// How many ranks to start.
    #[arg(short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_RANKS)), allow_negative_numbers = true)]
    ranks: u32,
    /// The GPUs of the ranks, one for each: `0,2` or `4-7`. Every rank gets the whole list in CUDA_VISIBLE_DEVICES and uses the one of its local rank.
    #[arg(long, value_name = "LIST")]
    devices: Option<DeviceList>,
    /// The port of 127.0.0.1 where the ranks meet. Without this flag a free one.
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// End the job after so many seconds, with exit code 5.
    #[arg(long, value_name = "S", value_parser = seconds, allow_negative_numbers = true)]
    time_limit: Option<Duration>,
    /// How long the other ranks may go on after one has failed. Then they get SIGTERM, and after as long again SIGKILL.
    #[arg(long, value_name = "S", value_parser = seconds, default_value = "2", allow_negative_numbers = true)]
    grace: Duration,
    /// How long ranks that are stopped (SIGSTOP) are waited for once all others have ended. Then they get SIGKILL.
    #[arg(long, value_name = "S", value_parser = seconds, default_value = "30", allow_negative_numbers = true)]
    stopped: Duration,
    /// Do not end the other ranks when one has failed.
    #[arg(long)]
    keep_going: bool,
    /// Start a failed rank again, at most K times. Rank 0 is not started again: where the ranks meet is lost with it.
    #[arg(long, value_name = "K", default_value_t = 0)]
    restart: u32,
    /// Run the ranks on simulated devices, and print what their checks find. Exit code 5 if they find anything.
    #[arg(long, conflicts_with = "devices")]
    check: bool,
    /// With --check: the seed of the simulated devices, which decides in which order they run ready work. Without it KILN_SIM_SEED is left as it is.
    #[arg(long, value_name = "S", requires = "check")]
    seed: Option<u64>,
    /// With --check: run the job so often, with one seed after the other from --seed (0) on, until one finds something or fails.
    #[arg(long, value_name = "N", requires = "check", value_parser = clap::value_parser!(u64).range(1..))]
    seeds: Option<u64>,
    /// With --check: what goes wrong on the simulated devices of ranks, such as `1:lost@40` (the device of rank 1 is lost at the fortieth call to it), `2:oom@3` or `1:hang@5`, with commas between them.
    #[arg(long, value_name = "PLAN", requires = "check")]
    fault: Option<RankFaults>,
    /// The program of every rank, and its arguments.
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

const EXAMPLES: &str = "Examples:
  kiln launch -n 4 -- target/release/train --epochs 3
  kiln launch -n 2 --devices 0,1 --time-limit 600 -- ./train
  kiln launch -n 8 --restart 2 -- ./train
  kiln launch -n 4 --check -- ./train
  kiln launch -n 4 --check --seeds 20 -- ./train
  kiln launch -n 4 --check --fault 2:lost@400 -- ./train

Every rank gets KILN_RANK, KILN_WORLD_SIZE, KILN_LOCAL_RANK, KILN_LOCAL_SIZE, \
     KILN_MEETING_POINT, KILN_JOB_TOKEN (random, new for each job), KILN_RESTARTS (how often this \
     rank was started again), KILN_RANK_ENDS_FILE (where it notes which other ranks it saw end or waited for in vain) and \
     KILN_TRACE_RUN (what the recordings of this job are known by, new for each job). Its standard input is empty. Its lines are printed as `[rank] line`, in order for each rank.

With --check every rank also gets KILN_POLICY=simulate, KILN_FINDINGS=report and \
     KILN_FINDINGS_FILE. A program that takes its device with DeviceRuntime::auto and its \
     communicator with DeviceCommunicator::meet runs as it is; collectives go through the store where \
     the ranks meet. What the simulated device of a rank found is printed with the rank when all have \
     ended. With --fault it gets KILN_SIM_FAULTS, too: its own faults of the plan, for the first simulated device of its first process. What was planned is no finding. Planned faults that did not come are named at the end.

When a rank fails, the command names it and ends the others. A rank that fails because another \
     one did is not named first, also if it ends first. A rank that it waited for in vain is named \
     as late. SIGINT, SIGTERM, SIGHUP and SIGQUIT are \
     passed on to all ranks; the second one kills them. SIGUSR1 and SIGUSR2 are passed on, too. A \
     rank dies with this command, however it ends. A rank that was lost and does not end gets SIGKILL \
     after 15 s. Ranks that are stopped when all others have ended are told, and get SIGKILL after --stopped. If the output cannot be written, or its reader leaves, the ranks are ended.

Exit codes: that of the rank that failed first, or 128 and the number of its signal; 0 if all \
     ranks succeeded. The command itself ends with 2 for wrong usage or a program that cannot be \
     started or output that cannot be written, 3 for a port in use or a GPU that is not there, 5 after --time-limit and for findings \
     of --check.";

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let Some(count) = arguments.seeds else { return run_job(arguments, arguments.seed) };
    let first = arguments.seed.unwrap_or(0);
    let Some(last) = first.checked_add(count - 1) else {
        let message = format!("--seeds {count} from --seed {first} goes beyond the last seed");
        return Err(Failure::usage(message).next("give fewer seeds or a smaller first one"));
    };
    for seed in first..=last {
        let ended = run_job(arguments, Some(seed));
        if !matches!(ended, Ok(Exit::Done)) {
            complain(format_args!("kiln launch: that was with seed {seed}; `--seed {seed}` repeats it"));
            return ended;
        }
    }
    complain(format_args!("kiln launch: no findings with seeds {first} to {last}"));
    Ok(Exit::Done)
}

/// Runs the job once.
fn run_job(arguments: &Arguments, seed: Option<u64>) -> Result<Exit, Failure> {
    arguments.fault.iter().try_for_each(|faults| faults.check(arguments.ranks))?;
    let visible_devices = arguments.devices.as_ref().map(|list| list.visible(arguments.ranks)).transpose()?;
    let token = job_token::fresh()?;
    let folder = JobFolder::new(&job_token::fresh()?);
    let folder = if arguments.check { Some(folder?) } else { folder.ok() };
    let checked = folder.as_ref().filter(|_| arguments.check);
    let findings = checked.map(|folder| RankFindings::new(folder, arguments.ranks)).transpose()?;
    let port = meeting_port::choose(arguments.port)?;
    let (ranks, run) = (arguments.ranks, recorded_run::fresh());
    let faults = arguments.fault.clone();
    let variables = JobVariables { ranks, port, token, run, visible_devices, seed, faults, findings, folder };
    let ended = supervisor::run(arguments, &variables);
    if let (Some(faults), Some(folder)) = (&variables.faults, &variables.folder) {
        faults.report(folder.path());
    }
    match &variables.findings {
        Some(findings) => findings.report(arguments.ranks, ended),
        None => ended,
    }
}

/// A number of seconds, as a flag gives it.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| *seconds > 0.0 && *seconds <= MAX_SECONDS);
    let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    duration.ok_or_else(|| format!("give a number of seconds above 0 and at most {MAX_SECONDS}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_positive_numbers() {
        assert_eq!(seconds("0.25"), Ok(Duration::from_millis(250)));
        for wrong in ["0", "-1", "nan", "inf", "1e300", "", "2s"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
