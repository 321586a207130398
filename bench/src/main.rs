//! kiln and its peers on the same workloads, in one run on one machine.
//!
//! Each workload prints one row per subject: the median and the 99th percentile of an operation in nanoseconds, and the ratio to the
//! first subject, which is the raw driver call. `--json FILE` keeps the rows.

mod raw;
mod row;
mod timing;
mod workload {
    pub(crate) mod graph;
    pub(crate) mod launch;
    pub(crate) mod overlap;
    pub(crate) mod recording;
    pub(crate) mod threads;
    pub(crate) mod transfer;
    pub(crate) mod turns;
}

use std::process::ExitCode;

use clap::Parser;

use row::Table;

/// Runs workloads on the first CUDA device and prints a table.
#[derive(Parser)]
struct Arguments {
    /// Workloads to run: g1, l1, l2, l3, l4, l5, m6, t1, t2; all of them if none is named.
    /// Workloads to run: l1, l2, l3, l4, l5, m6, record, t1, t2; all of them if none is named.
    workloads: Vec<String>,
    /// Repeats of each measurement; the median of their medians is what counts.
    #[arg(long, default_value_t = 5)]
    repeats: usize,
    /// Keeps the rows as JSON.
    #[arg(long)]
    json: Option<std::path::PathBuf>,
}

type Failure = Box<dyn std::error::Error>;
type Workload = fn(&mut Table, usize) -> Result<(), Failure>;

const WORKLOADS: &[(&str, Workload)] = &[
    ("g1", workload::graph::replayed),
    ("l1", workload::launch::four_buffers),
    ("l2", workload::turns::two_streams),
    ("l3", workload::launch::many_buffers),
    ("l4", workload::threads::eight),
    ("l5", workload::launch::no_kernel),
    ("m6", workload::overlap::spinning),
    ("record", workload::recording::on_demand_and_at_once),
    ("t1", workload::transfer::pageable_and_pinned),
    ("t2", workload::transfer::pinned_block),
];

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            #[expect(clippy::print_stderr, reason = "the command speaks to its user")]
            {
                eprintln!("kiln-bench: {failure}");
            }
            ExitCode::from(3)
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Failure> {
    if let Some(unknown) =
        arguments.workloads.iter().find(|name| WORKLOADS.iter().all(|(known, _)| known != name))
    {
        return Err(format!("there is no workload `{unknown}`; see --help").into());
    }
    let mut table = Table::default();
    for (name, workload) in WORKLOADS {
        if arguments.workloads.is_empty() || arguments.workloads.iter().any(|wanted| wanted == name) {
            workload(&mut table, arguments.repeats)?;
        }
    }
    if let Some(path) = &arguments.json {
        std::fs::write(path, table.json()?)?;
    }
    Ok(())
}
