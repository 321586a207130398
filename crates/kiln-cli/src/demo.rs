//! `kiln demo`: the main job in small.
//!
//! A pipeline of copies and kernels on four streams, ordered by nothing but what its kernels read and write; checked bit by
//! bit against the host; drawn. On the simulated device every access is checked too. Then a twin with one edge left out,
//! to show that the checker would have said so. With `--isolate`, the same kernels in a worker process that does not live to see the end.

mod device;
mod isolated;
mod kernels;
mod report;
mod stopwatch;
mod timeline;
mod twin;
mod workload;

use clap::Args;
use serde::Serialize;

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
    /// Keep the device in a worker process, kill that in the middle, and show what another one finds.
    #[arg(long)]
    isolate: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, console: &mut Console) -> Exit {
    let ended = if arguments.isolate {
        isolated::run(arguments.device, arguments.seed).map(|report| {
            show(console, arguments.json, &report, |_| report.text());
            report.exit()
        })
    } else {
        perform(arguments).map(|report| {
            let colours = console.colours();
            show(console, arguments.json, &report, |columns| report.text(columns, colours));
            report.exit()
        })
    };
    ended.unwrap_or_else(|error| {
        complain(format_args!("kiln demo: {error:#}"));
        Exit::from(&error)
    })
}

/// Prints a report for people or for programs.
fn show(console: &mut Console, json: bool, report: &impl Serialize, text: impl FnOnce(usize) -> String) {
    if !json {
        let text = text(console.columns());
        return console.line(text);
    }
    match serde_json::to_string_pretty(report) {
        Ok(json) => console.line(json),
        Err(error) => complain(format_args!("kiln demo: {error}")),
    }
}

fn perform(arguments: &Arguments) -> kiln::Result<Report> {
    let stage = Stage::set(arguments.device, arguments.seed)?;
    let work = workload::run(&stage, arguments.seed)?;
    let twin = twin::run(arguments.seed)?;
    Ok(Report::new(stage.close(), work, twin, arguments.seed))
}
