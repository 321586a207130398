//! `kiln demo`: the main job in small.
//!
//! A pipeline of copies and kernels on four streams, ordered by nothing but what its kernels read and write; checked bit by
//! bit against the host; drawn. On the simulated device every access is checked too. Then a twin with one edge left out,
//! to show that the checker would have said so.

mod device;
mod kernels;
mod report;
mod stopwatch;
mod timeline;
mod twin;
mod workload;

use clap::Args;

use crate::console::{Console, complain};
use crate::device::Where;
use crate::exit::Exit;

use device::Stage;
use report::Report;

/// The flags of `kiln demo`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Where to run; `auto` takes a GPU if there is one and the policy allows it, else the simulated device.
    #[arg(long, value_enum, default_value_t = Where::Auto)]
    device: Where,
    /// Picks the data, and on the simulated device the order in which ready work runs.
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, console: &mut Console) -> Exit {
    match perform(arguments) {
        Ok(report) => {
            if arguments.json {
                match serde_json::to_string_pretty(&report) {
                    Ok(json) => console.line(json),
                    Err(error) => complain(format_args!("kiln demo: {error}")),
                }
            } else {
                console.line(report.text(console.columns(), console.colours()));
            }
            report.exit()
        }
        Err(error) => {
            complain(format_args!("kiln demo: {error:#}"));
            Exit::from(&error)
        }
    }
}

fn perform(arguments: &Arguments) -> kiln::Result<Report> {
    let stage = Stage::set(arguments.device, arguments.seed)?;
    let work = workload::run(&stage, arguments.seed)?;
    let twin = twin::run(arguments.seed)?;
    Ok(Report::new(stage.close(), work, twin, arguments.seed))
}
