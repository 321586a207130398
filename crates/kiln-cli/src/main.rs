//! The command `kiln`.
//!
//! `kiln doctor` says what this machine has and what to do about what it lacks. `kiln demo` does real work, on a GPU or on
//! the simulated device, and checks it. `kiln inspect` reads kernels and programs, `kiln run` runs one on arrays from files,
//! `kiln check` does so with every check on, and `kiln cache` looks after compiled kernels. `kiln emit` prints a program as PTX.
//! `kiln replay` makes the calls of an allocation log again, and `kiln bench` measures memory. How each ends is in [`exit`].

mod bench;
mod cache;
mod check;
mod code_file;
mod console;
mod demo;
mod device;
mod doctor;
mod element_type;
mod emit;
mod exit;
mod failure;
mod inspect;
mod launch;
mod npy;
mod program_file;
mod replay;
mod run;
mod source_file;
mod spec;
mod table;

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
    /// List the kernels of a file, or say what its program is: what they take, do and need.
    Inspect(inspect::Arguments),
    /// Run a kernel or a program on arrays from .npy files.
    Run(Box<run::Arguments>),
    /// Run a kernel or a program on the simulated device with every check on, in several orders.
    Check(Box<check::Arguments>),
    /// Print a program (.kir) as PTX.
    Emit(emit::Arguments),
    /// List, verify, prune or clear the compiled kernels on disk.
    Cache(cache::Arguments),
    /// Make the calls of an allocation log again, and say what they cost and how little memory would have done.
    Replay(replay::Arguments),
    /// Measure memory: the workloads m1 to m7 on a stack, beside the driver's pool and cudarc.
    Bench(bench::Arguments),
}

fn main() -> ExitCode {
    // A device that is isolated lives in this program, started again.
    kiln_isolate::worker_entry();
    let line = CommandLine::parse();
    let mut console = Console::stdout();
    let exit = match &line.command {
        Command::Doctor(arguments) => doctor::run(arguments, &mut console),
        Command::Demo(arguments) => demo::run(arguments, &mut console),
        Command::Inspect(arguments) => inspect::run(arguments, &mut console),
        Command::Run(arguments) => run::run(arguments, &mut console),
        Command::Check(arguments) => check::run(arguments, &mut console),
        Command::Emit(arguments) => emit::run(arguments, &mut console),
        Command::Cache(arguments) => cache::run(arguments, &mut console),
        Command::Replay(arguments) => replay::run(arguments, &mut console),
        Command::Bench(arguments) => bench::run(arguments, &mut console),
    };
    match console.failure() {
        None => exit.into(),
        Some(error) => {
            complain(format_args!("kiln: the output could not be written: {error}"));
            Exit::Fault.into()
        }
    }
}
