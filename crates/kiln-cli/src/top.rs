//! `kiln top`: all kiln programs of the user, and the figures of their GPUs.

mod entry;
mod gpu_figures;
mod programs;
#[cfg(unix)]
mod screen;
#[cfg(not(unix))]
#[path = "top/screen_unsupported.rs"]
mod screen;
mod text;

use std::io::{self, IsTerminal};
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use crate::console::Console;
use crate::exit_code::Exit;
use crate::failure::Failure;
use entry::Program;
use gpu_figures::{Gpu, Gpus};

/// The flags of `kiln top`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Print once and end, also on a terminal.
    #[arg(long)]
    once: bool,
    /// Print JSON, once.
    #[arg(long)]
    pub(crate) json: bool,
    /// Seconds between two looks.
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = seconds)]
    every: f64,
}

const EXAMPLES: &str = "Examples:
  KILN_TOP=1 ./train &
  kiln top
  kiln top --once
  kiln top --json

A program is seen if it runs with KILN_TOP=1, or calls kiln::telemetry::publish.
For each of its runtimes: memory in use against the limit, memory by tag, streams,
submissions a second, faults. For each GPU what NVML says, of all its users.

Keys: q or Esc ends, the arrows scroll. In a pipe it prints once. A signal that
ends it gives the terminal back first.

Exit codes: 0 done, 2 wrong usage, or a folder or terminal that cannot be used.";

/// What is seen at one moment.
#[derive(Serialize)]
struct Seen {
    programs: Vec<Program>,
    gpus: Vec<Gpu>,
    /// Why there are no figures of GPUs, where there are none.
    gpus_absent: Option<String>,
    /// Entries that could not be read.
    unreadable: u64,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, console: &mut Console) -> Result<Exit, Failure> {
    let is_once = arguments.once || !io::stdout().is_terminal() || !io::stdin().is_terminal();
    if !arguments.json && !is_once {
        let every = Duration::from_secs_f64(arguments.every);
        screen::run(every, Gpus::load, look)?;
        return Ok(Exit::Done);
    }
    let seen = look(&Gpus::load())?;
    if arguments.json {
        console.json(&seen)?;
    } else {
        text::lines(&seen).iter().for_each(|line| console.line(line.plain()));
    }
    Ok(Exit::Done)
}

fn look(gpus: &Gpus) -> Result<Seen, Failure> {
    let folder = kiln::telemetry::published_folder();
    let (programs, unreadable) =
        programs::published(&folder).map_err(|error| Failure::file(&folder, error))?;
    let (gpus, gpus_absent) = gpus.figures();
    Ok(Seen { programs, gpus, gpus_absent, unreadable })
}

/// A time between looks.
fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("give a number of seconds from 0.1 to 3600".to_owned()),
    }
}
