//! `cargo xtask kernels`: compiles the kernels that kiln-libs ships as PTX.
//!
//! The sources are CUDA C beside the operations that launch them. A test of kiln-libs compiles each for each type and compares; this runs it with the pinned
//! NVRTC, and has it write the files instead.

use clap::Args;

use crate::failure::Result;
use crate::process;
use crate::toolkit::{Search, Toolkit};
use crate::workspace::Workspace;

/// The variable that has the test write.
const WRITE: &str = "KILN_WRITE_KERNELS";

/// What can be said on the command line.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Compares and writes nothing
    #[arg(long)]
    check: bool,
}

/// Runs the test.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result {
    let toolkit = Toolkit::find_or_fetch(&workspace.target, Search::Packages)?;
    let mut command = workspace.cargo();
    command.args(["test", "--quiet", "--package", "kiln-libs", "--test", "operations", "--", "shipped_ptx"]);
    toolkit.set_environment(&mut command);
    if !arguments.check {
        command.env(WRITE, "1");
    }
    process::succeed(&mut command)
}
