//! `cargo xtask differential`: random programs on the interpreter and, as PTX, on the executor.
//!
//! The tests run twenty thousand; this runs the same ones, optimised and as many as one likes. The program that does it is an
//! example of kiln-ir; its last line is `N passed, N failed`.

use clap::Args;

use crate::failure::Result;
use crate::process;
use crate::workspace::Workspace;

/// What can be said on the command line.
#[derive(Args)]
pub(crate) struct Arguments {
    /// How many programs
    #[arg(long, default_value_t = 100_000)]
    programs: u64,
    /// The seed of the first of them
    #[arg(long, default_value_t = 1)]
    from: u64,
    /// How many run at once; all cores if nothing is said
    #[arg(long)]
    workers: Option<u64>,
}

/// Builds and runs the programs.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result {
    let cores = || std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let workers = arguments.workers.unwrap_or_else(cores);
    let mut command = workspace.cargo();
    command.args(["run", "--quiet", "--release", "--package", "kiln-ir", "--example", "program_seeds", "--"]);
    command.args([arguments.from.to_string(), arguments.programs.to_string(), workers.to_string()]);
    process::succeed(&mut command)
}
