//! The command `kiln`.
//!
//! `kiln doctor` says what this machine has and what to do about what it lacks. `kiln demo` does real work, on a GPU or on
//! the simulated device, and checks it. How each ends is in [`exit`].

mod console;
mod demo;
mod doctor;
mod exit;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use console::{Console, complain};
use exit::Exit;

/// A CUDA device runtime that also runs with no GPU.
#[derive(Parser)]
#[command(name = "kiln", version, arg_required_else_help = true, after_help = EXIT_CODES)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 done, 2 wrong usage or input, 3 refused or absent, 4 compile error, \
                          5 fault or finding.";

#[derive(Subcommand)]
enum Command {
    /// Say what this machine has, and what to do about what it lacks.
    Doctor(doctor::Arguments),
    /// Run a small pipeline on a device, check its results, and draw what ran when.
    Demo(demo::Arguments),
}

fn main() -> ExitCode {
    let line = CommandLine::parse();
    let mut console = Console::stdout();
    let exit = match &line.command {
        Command::Doctor(arguments) => doctor::run(arguments, &mut console),
        Command::Demo(arguments) => demo::run(arguments, &mut console),
    };
    match console.failure() {
        None => exit.into(),
        Some(error) => {
            complain(format_args!("kiln: the output could not be written: {error}"));
            Exit::Fault.into()
        }
    }
}
