//! `kiln demo`: a small pipeline that is checked and drawn.
//!
//! Copies and kernels on four streams, ordered only by what they read and write, are compared bit by bit with the host. On the simulated
//! device every access is checked as well. Then a copy of the pipeline with one dependency left out shows that the checker finds it.
//! With `--isolate`, the same kernels run in a worker process that is killed halfway.

mod device;
mod event_timing_layer;
#[cfg(target_os = "linux")]
mod isolated;
#[cfg(not(target_os = "linux"))]
#[path = "demo/isolation_unsupported.rs"]
mod isolated;
mod kernels;
mod racy_pipeline;
mod report;
mod timeline;
mod workload;

use std::path::PathBuf;

use clap::Args;
use kiln::error::{ErrorKind, RecordingError};
use serde::Serialize;

use crate::console::{Console, complain};
use crate::device_choice::Where;
use crate::exit_code::Exit;
use crate::failure::Failure;

use device::Stage;
use report::Report;

/// The flags of `kiln demo`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Where to run; `auto` takes a GPU if there is one and the policy allows it, else the simulated device.
    #[arg(long, value_enum, default_value_t = Where::Auto)]
    device: Where,
    /// Chooses the data, and on the simulated device the order of independent work.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Run the device in a worker process, kill the worker halfway, and verify the memory in the next one.
    #[arg(long, conflicts_with = "trace")]
    isolate: bool,
    /// Record the pipeline to a file, for `kiln trace` and `kiln explain`.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

const EXAMPLES: &str = "Examples:
  kiln demo
  kiln demo --device sim --seed 7
  kiln demo --isolate
  kiln demo --trace demo.kiln && kiln explain demo.kiln

Exit codes: 0 every check passed, 2 wrong usage, 3 a missing device, 5 a check failed.";

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, console: &mut Console) -> Result<Exit, Failure> {
    let (columns, colours) = (console.drawing_columns(), console.colours());
    if arguments.isolate {
        let report = isolated::run(arguments.device, arguments.seed)?;
        show(console, arguments.json, &report, || report.text(columns))?;
        return Ok(report.exit());
    }
    let report = perform(arguments)?;
    show(console, arguments.json, &report, || report.text(columns, colours))?;
    Ok(report.exit())
}

/// Prints a report as JSON or as text.
fn show(
    console: &mut Console,
    json: bool,
    report: &impl Serialize,
    text: impl FnOnce() -> String,
) -> Result<(), Failure> {
    if json {
        return console.json(report);
    }
    console.line(text());
    Ok(())
}

fn perform(arguments: &Arguments) -> kiln::Result<Report> {
    let stage = Stage::set(arguments.device, arguments.seed)?;
    if let Some(path) = &arguments.trace {
        match stage.runtime().trace_timed(path) {
            // By who started the command, which has a recording then.
            Err(error)
                if matches!(error.kind(), ErrorKind::Trace(RecordingError::AlreadyRecorded { .. })) =>
            {
                complain(format_args!("note: {error}"));
            }
            traced => traced?,
        }
    }
    let work = workload::run(&stage, arguments.seed)?;
    let twin = racy_pipeline::run(arguments.seed)?;
    Ok(Report::new(stage.close(), work, twin, arguments.seed))
}
