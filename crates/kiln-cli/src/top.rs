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
    /// Show only the programs with these process numbers, which commas may separate, too.
    #[arg(value_name = "PROCESS", value_delimiter = ',')]
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
  kiln top 4711 4712
  kiln top --json

A program is seen if it runs with KILN_TOP=1, or calls kiln::telemetry::publish, while it has a \
     runtime. It publishes in a folder of its user: `kiln` in XDG_RUNTIME_DIR, or else `kiln-UID` in \
     the temporary folder. Both need the same. For each of its runtimes: memory in use against the \
     limit, memory by tag, streams, submissions a second, faults. For each GPU what NVML says, of all \
     its users.

With process numbers it shows those that are seen, and says of each other one why it is not: it \
     has ended, it publishes nothing, it is of another user, its entry cannot be read. It ends with 2 \
     if none of them is seen at first, and where it prints once also if one is not.

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
    /// Processes that were asked for and are not seen.
    not_seen: Vec<NotSeen>,
}

/// A process that was asked for and is not seen.
#[derive(Serialize)]
struct NotSeen {
    process: u32,
    why: String,
    next_step: String,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, console: &mut Console) -> Result<Exit, Failure> {
    let processes = without_repeats(&arguments.processes);
    let is_once = arguments.once || !io::stdout().is_terminal() || !io::stdin().is_terminal();
    if !arguments.json && !is_once {
        let every = Duration::from_secs_f64(arguments.every);
        check(&processes)?;
        screen::run(every, Gpus::load, |gpus| look(gpus, &processes))?;
        return Ok(Exit::Done);
    }
    // A document has all that is asked for, also if none is seen.
    if !arguments.json {
        check(&processes)?;
    }
    let mut seen = look(&Gpus::load(), &processes)?;
    let is_all = seen.folder_wrong.is_none() && seen.not_seen.is_empty();
    let exit = if is_all { Exit::Done } else { Exit::Usage };
    if arguments.json {
        console.json(&seen)?;
    } else {
        // On the standard error, too, which a script that reads the other shows.
        seen.folder_wrong.iter().for_each(|wrong| complain(format_args!("{}: {wrong}", seen.folder)));
        for NotSeen { why, next_step, .. } in seen.not_seen.drain(..) {
            complain(format_args!("kiln top: {}", Failure::usage(why).next(next_step)));
        }
        for line in text::lines(&seen) {
            match line.look {
                Look::Command => console.unbroken(line.plain()),
                _ => console.line(line.plain()),
            }
        }
    }
    Ok(exit)
}

/// Sees that one of the processes that are asked for publishes.
fn check(processes: &[u32]) -> Result<(), Failure> {
    let folder = kiln::telemetry::published_folder();
    let mut missing = not_seen(&published(&folder)?, processes, &folder);
    if processes.is_empty() || missing.len() < processes.len() {
        return Ok(());
    }
    let NotSeen { why, next_step, .. } = missing.remove(0);
    // The others are told, too: each may have another reason.
    missing.into_iter().for_each(|NotSeen { why, .. }| complain(format_args!("kiln top: {why}")));
    Err(Failure::usage(why).next(next_step))
}

/// Those processes that are not seen, and why.
fn not_seen(published: &Published, processes: &[u32], folder: &Path) -> Vec<NotSeen> {
    let why_not = |process: &u32| {
        let (why, next_step) = published.why_not(*process, folder)?;
        Some(NotSeen { process: *process, why, next_step })
    };
    processes.iter().filter_map(why_not).collect()
}

/// Each number once, in the order in which they are given.
fn without_repeats(processes: &[u32]) -> Vec<u32> {
    let mut known = Vec::with_capacity(processes.len());
    for process in processes {
        if !known.contains(process) {
            known.push(*process);
        }
    }
    known
}

/// What is seen of these processes; of all, if none is named.
fn look(gpus: &Gpus, processes: &[u32]) -> Result<Seen, Failure> {
    let folder = kiln::telemetry::published_folder();
    let Published { mut programs, mut unreadable } = published(&folder)?;
    let mut missing = Vec::new();
    if !processes.is_empty() {
        programs.retain(|program| processes.contains(&program.process));
        unreadable.retain(|entry| processes.contains(&entry.process));
        let known = Published { programs, unreadable };
        missing = not_seen(&known, processes, &folder);
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
        not_seen: missing,
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
