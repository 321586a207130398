//! `cargo xtask corpus`: kernels of other projects on the simulated device, to see whether right ones are reported.
//!
//! Nothing is fetched: the paths are folders or files on this machine, with CUDA C (`.cu`) or PTX (`.ptx`). The program that runs them is an
//! example of kiln; its last line has the totals.

use std::path::PathBuf;

use clap::Args;

use crate::failure::Result;
use crate::process;
use crate::toolkit::{Search, Toolkit};
use crate::workspace::Workspace;

/// What can be said on the command line.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Folders and files with kernels
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// A folder with headers for CUDA C, besides the file's own
    #[arg(short = 'I', long = "include", value_name = "FOLDER")]
    include: Vec<PathBuf>,
    /// Launches nothing: counts the kernels that parse, whose effects are known and that can be executed
    #[arg(long)]
    count: bool,
}

/// Builds and runs the program.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result {
    let mut command = workspace.cargo();
    Toolkit::find_or_fetch(&workspace.target, Search::Everywhere)?.set_environment(&mut command);
    command.args(["run", "--quiet", "--release", "--package", "kiln", "--example", "corpus", "--"]);
    command.args(arguments.count.then_some("--count"));
    command.args(arguments.include.iter().map(|folder| format!("-I{}", folder.display())));
    command.args(&arguments.paths);
    process::succeed(&mut command)
}
