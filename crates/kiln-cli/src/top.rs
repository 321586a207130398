//! `kiln top`: all kiln programs of the user, and the figures of their GPUs.

mod entry;
mod gpu_figures;
mod process_state;
mod programs;
#[cfg(unix)]
mod screen;
#[cfg(not(unix))]
#[path = "top/screen_unsupported.rs"]
mod screen;
mod text;

use std::io::{self, IsTerminal};
use std::path::Path;
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use crate::console::{Console, complain};
use crate::exit_code::Exit;
use crate::failure::Failure;
use entry::Program;
use gpu_figures::{Gpu, Gpus};
use programs::{Published, UnreadableEntry};
use text::Look;

/// The flags of `kiln top`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Show only the programs with these process numbers.
    #[arg(value_name = "PROCESS")]
    processes: Vec<u32>,
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
  kiln top 4711
  kiln top --json

A program is seen if it runs with KILN_TOP=1, or calls kiln::telemetry::publish, while it has a \
     runtime. It publishes in a folder of its user: `kiln` in XDG_RUNTIME_DIR, or else `kiln-UID` in \
     the temporary folder. Both need the same. For each of its runtimes: memory in use against the \
     limit, memory by tag, streams, submissions a second, faults. For each GPU what NVML says, of all \
     its users.

With process numbers it says of each that is not seen why: it has ended, it publishes nothing, \
     it is of another user, its entry cannot be read. It ends with 2 if one of them is not seen at \
     first.

Keys: q or Esc ends, the arrows scroll. In a pipe it prints once. A signal that ends it gives \
     the terminal back first.

Exit codes: 0 done, 2 wrong usage, a process that is not seen, or a folder or terminal that \
     cannot be used.";

/// What is seen at one moment.
#[derive(Serialize)]
struct Seen {
    programs: Vec<Program>,
    gpus: Vec<Gpu>,
    /// Why there are no figures of GPUs, where there are none.
    gpus_absent: Option<String>,
    /// Where programs publish.
    folder: String,
    /// Why programs publish nothing there.
    folder_wrong: Option<String>,
    /// Entries that could not be read.
    unreadable: u64,
    unreadable_entries: Vec<UnreadableEntry>,
    /// Processes that were asked for and are not seen any more, and why.
    #[serde(skip)]
    lost: Vec<String>,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, console: &mut Console) -> Result<Exit, Failure> {
    let is_once = arguments.once || !io::stdout().is_terminal() || !io::stdin().is_terminal();
    if !arguments.json && !is_once {
        let every = Duration::from_secs_f64(arguments.every);
        check(&arguments.processes)?;
        screen::run(every, Gpus::load, |gpus| look(gpus, &arguments.processes))?;
        return Ok(Exit::Done);
    }
    check(&arguments.processes)?;
    let seen = look(&Gpus::load(), &arguments.processes)?;
    let exit = if seen.folder_wrong.is_some() { Exit::Usage } else { Exit::Done };
    if arguments.json {
        console.json(&seen)?;
    } else {
        // On the standard error, too, which a script that reads the other shows.
        seen.folder_wrong.iter().for_each(|wrong| complain(format_args!("{}: {wrong}", seen.folder)));
        for line in text::lines(&seen) {
            match line.look {
                Look::Command => console.unbroken(line.plain()),
                _ => console.line(line.plain()),
            }
        }
    }
    Ok(exit)
}

/// Sees that the processes that are asked for publish.
fn check(processes: &[u32]) -> Result<(), Failure> {
    let folder = kiln::telemetry::published_folder();
    let published = published(&folder)?;
    match processes.iter().find_map(|process| published.why_not(*process, &folder)) {
        None => Ok(()),
        Some((what, next)) => Err(Failure::usage(what).next(next)),
    }
}

/// What is seen of these processes; of all, if none is named.
fn look(gpus: &Gpus, processes: &[u32]) -> Result<Seen, Failure> {
    let folder = kiln::telemetry::published_folder();
    let Published { mut programs, mut unreadable } = published(&folder)?;
    let mut lost = Vec::new();
    if !processes.is_empty() {
        programs.retain(|program| processes.contains(&program.process));
        unreadable.retain(|entry| processes.contains(&entry.process));
        let known = Published { programs, unreadable };
        let why = processes.iter().filter_map(|process| known.why_not(*process, &folder));
        lost.extend(why.map(|(what, _)| what));
        Published { programs, unreadable } = known;
    }
    let (gpus, gpus_absent) = gpus.figures();
    Ok(Seen {
        programs,
        gpus,
        gpus_absent,
        folder: folder.display().to_string(),
        folder_wrong: programs::wrong_with(&folder),
        unreadable: unreadable.len() as u64,
        unreadable_entries: unreadable,
        lost,
    })
}

fn published(folder: &Path) -> Result<Published, Failure> {
    Published::read(folder).map_err(|error| {
        let next = programs::wrong_with(folder);
        let failure = Failure::file(folder, error);
        if let Some(next) = next { failure.next(next) } else { failure }
    })
}

/// A time between looks.
fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("give a number of seconds from 0.1 to 3600".to_owned()),
    }
}
