//! The command `kiln`.
//!
//! | command | does |
//! |---|---|
//! | `doctor` | says whether this machine can run kernels, and what to install or repair |
//! | `demo` | runs a checked pipeline on a GPU or on the simulated device |
//! | `inspect` | lists what kernels or programs take, read, write and need |
//! | `run` | runs a kernel or program on arrays from files |
//! | `check` | the same on the simulated device with every check on |
//! | `exec` | runs a program that calls the CUDA driver API on the simulated device |
//! | `emit` | prints a program as PTX |
//! | `cache` | manages compiled kernels on disk |
//! | `replay` | repeats the calls of an allocation log |
//! | `bench` | measures memory allocation |
//! | `launch` | starts the ranks of a program on this host |
//! | `scale` | estimates how recorded collectives scale to many ranks |
//! | `trace` | records a program, or makes a trace for Perfetto of a recording |
//! | `explain` | says in words what a recording shows |
//! | `watch` | serves a page that shows a recording |
//!
//! `doctor` starts the command `load-library`, which help does not list.
//!
//! Every command returns an [`Exit`] or a [`Failure`]; this file prints failures, as text or as JSON.

mod argument_spec;
mod bench;
mod cache;
mod check;
mod code_file;
mod console;
mod constant_spec;
mod declared_type;
mod declared_variable;
mod demangled_name;
mod demo;
mod device_choice;
mod doctor;
mod earlier_recording;
mod element_type;
mod emit;
mod exec;
mod exit_code;
mod explain;
mod failure;
mod fault_log;
mod inspect;
mod kernel_name;
mod launch;
mod left_behind;
mod line_wrap;
mod live_process;
mod local_job;
mod new_file;
mod note_kind;
mod npy;
mod outputs_at_start;
mod plural;
mod printable_text;
mod program_end;
mod program_file;
#[cfg(target_os = "linux")]
mod program_signals;
#[cfg(not(target_os = "linux"))]
#[path = "program_signals_unsupported.rs"]
mod program_signals;
mod progress_line;
mod recorded_run;
mod recording_file;
mod replay;
mod run;
mod scaling;
#[cfg(target_os = "linux")]
mod signal_name;
#[cfg(target_os = "linux")]
mod signals;
mod source_file;
mod source_token;
mod table;
mod template_kernel;
mod text_file;
mod top;
mod trace;
mod watch;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use console::{Console, complain, stderr_colours};
use exit_code::Exit;
use failure::Failure;

/// Run, check and inspect CUDA kernels, with a GPU or without one.
#[derive(Parser)]
#[command(name = "kiln", version, arg_required_else_help = true, after_help = EXIT_CODES)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "Start with `kiln doctor`, which says whether this machine can run kernels.

Exit codes: 0 done, 2 wrong usage, or a file or output that cannot be read or written, 3 refused \
     or missing, 4 compile error, 5 fault or finding. With --json, errors are JSON on the standard \
     output.";

/// Wider lines are hard to read.
const HELP_COLUMNS: usize = 100;

#[derive(Subcommand)]
enum Command {
    /// Say whether this machine can run kernels, and what to install or repair.
    Doctor(doctor::Arguments),
    /// Run a small pipeline, check its results, and draw when each step ran.
    Demo(demo::Arguments),
    /// List the kernels of a file, or describe its program: parameters, accesses, memory.
    Inspect(inspect::Arguments),
    /// Run a kernel or a program on arrays from .npy files.
    Run(Box<run::Arguments>),
    /// Run a kernel or a program on the simulated device with every check on.
    Check(Box<check::Arguments>),
    /// Run a program that calls the CUDA driver API on the simulated device with every check on.
    Exec(exec::Arguments),
    /// Print a program (.kir) as PTX.
    Emit(emit::Arguments),
    /// List, verify, prune or clear the compiled kernels on disk.
    Cache(cache::Arguments),
    /// Repeat the calls of an allocation log, and measure their time and memory.
    Replay(replay::Arguments),
    /// Measure memory allocation: the workloads m1 to m7.
    Bench(bench::Arguments),
    /// Start the ranks of a program on this host, and supervise them.
    Launch(local_job::Arguments),
    /// Estimate how recorded collectives scale to many ranks.
    Scale(scaling::Arguments),
    /// Record a program, or make a trace for Perfetto of a recording.
    Trace(trace::Arguments),
    /// Say in words what a recording shows: idle devices, waits, memory.
    Explain(explain::Arguments),
    /// Serve a page that shows a recording, also while the program runs.
    Watch(watch::Arguments),
    /// Watch the kiln programs of this user: memory by tag, submissions, faults, GPUs.
    Top(top::Arguments),
    /// Load a library, for `kiln doctor`.
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    LoadLibrary(doctor::load_library::Arguments),
}

impl Command {
    /// Its name, and whether it prints JSON.
    fn name_and_json(&self) -> (&'static str, bool) {
        match self {
            Self::Doctor(arguments) => ("doctor", arguments.json),
            Self::Demo(arguments) => ("demo", arguments.json),
            Self::Inspect(arguments) => ("inspect", arguments.json),
            Self::Run(arguments) => ("run", arguments.launch.json),
            Self::Check(arguments) => ("check", arguments.launch.json),
            Self::Exec(arguments) => ("exec", arguments.json),
            Self::Emit(_) => ("emit", false),
            Self::Cache(arguments) => ("cache", arguments.json),
            Self::Replay(arguments) => ("replay", arguments.json),
            Self::Bench(arguments) => ("bench", arguments.json),
            Self::Launch(_) => ("launch", false),
            Self::Scale(arguments) => ("scale", arguments.json),
            Self::Trace(arguments) => ("trace", arguments.json),
            Self::Explain(arguments) => ("explain", arguments.json),
            Self::Watch(arguments) => ("watch", arguments.json),
            Self::Top(arguments) => ("top", arguments.json),
            #[cfg(target_os = "linux")]
            Self::LoadLibrary(_) => ("load-library", false),
        }
    }

    fn run(&self, console: &mut Console) -> Result<Exit, Failure> {
        match self {
            Self::Doctor(arguments) => doctor::run(arguments, console),
            Self::Demo(arguments) => demo::run(arguments, console),
            Self::Inspect(arguments) => inspect::run(arguments, console),
            Self::Run(arguments) => run::run(arguments, console),
            Self::Check(arguments) => check::run(arguments, console),
            Self::Exec(arguments) => exec::run(arguments, console),
            Self::Emit(arguments) => emit::run(arguments, console),
            Self::Cache(arguments) => cache::run(arguments, console),
            Self::Replay(arguments) => replay::run(arguments, console),
            Self::Bench(arguments) => bench::run(arguments, console),
            Self::Launch(arguments) => local_job::run(arguments),
            Self::Scale(arguments) => scaling::run(arguments, console),
            Self::Trace(arguments) => trace::run(arguments, console),
            Self::Explain(arguments) => explain::run(arguments, console),
            Self::Watch(arguments) => watch::run(arguments, console),
            Self::Top(arguments) => top::run(arguments, console),
            #[cfg(target_os = "linux")]
            Self::LoadLibrary(arguments) => doctor::load_library::run(arguments),
        }
    }
}

fn main() -> ExitCode {
    // An isolated device lives in this program, started again as a worker.
    kiln_isolate::worker_entry();
    let mut console = Console::stdout();
    let exit = match parse(console.drawing_columns()) {
        Ok(line) => {
            let (name, json) = line.command.name_and_json();
            line.command
                .run(&mut console)
                .unwrap_or_else(|failure| report(name, json, &failure, &mut console))
        }
        Err(error) if error.use_stderr() && asks_for_json() => report("", true, &usage(&error), &mut console),
        Err(error) => {
            show(&error);
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(Exit::Usage.code()));
        }
    };
    match console.failure() {
        None => exit.into(),
        Some(error) => {
            complain(format_args!("kiln: the output could not be written: {error}"));
            Exit::Usage.into()
        }
    }
}

/// Whether `--json` is a word of this command, and not of a program that it starts.
fn asks_for_json() -> bool {
    std::env::args_os().take_while(|word| word != "--").any(|word| word == "--json")
}

/// Parses the command line; help fits so many columns.
fn parse(columns: usize) -> Result<CommandLine, clap::Error> {
    let mut command = CommandLine::command().term_width(columns.min(HELP_COLUMNS));
    let matches = command.try_get_matches_from_mut(std::env::args_os())?;
    CommandLine::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// Prints help, a version, or what is wrong with the command line, in lines that fit the terminal.
fn show(error: &clap::Error) {
    if error.use_stderr() {
        let text = error.render();
        let text = if stderr_colours() { text.ansi().to_string() } else { text.to_string() };
        complain(text.trim_end());
    } else {
        // There is nothing to do if that fails.
        let _ = error.print();
    }
}

/// Prints a failure, and returns how the command ends.
fn report(command: &str, json: bool, failure: &Failure, console: &mut Console) -> Exit {
    // A reader of JSON gets one document: what was printed before stands, and the rest is told in words.
    if !json || console.has_json() {
        complain(format_args!("kiln {command}: {failure}"));
    } else if let Err(failure) = console.json(&failure.report()) {
        complain(format_args!("kiln {command}: {failure}"));
    }
    failure.exit
}

/// A command line that clap did not accept.
fn usage(error: &clap::Error) -> Failure {
    let text = error.render().to_string();
    let mut paragraphs = text.split("\n\n").map(str::trim).filter(|paragraph| !paragraph.is_empty());
    let message = paragraphs.next().unwrap_or("the command line is wrong");
    let message = message.strip_prefix("error: ").unwrap_or(message);
    let hints: Vec<&str> = paragraphs.collect();
    Failure::usage(message).next(if hints.is_empty() { "try --help".to_owned() } else { hints.join("\n") })
}
