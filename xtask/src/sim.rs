//! `cargo xtask sim`: the order's random programs, for as many seeds as one likes.
//!
//! The tests run ten thousand seeds; this runs the same programs, optimised and on all cores, and more kinds of them at once. The
//! program that does it is an example of kiln; its last line is `N passed, N failed`.

use clap::Args;

use crate::failure::Result;
use crate::process;
use crate::workspace::Workspace;

/// What can be said on the command line.
#[derive(Args)]
pub(crate) struct Arguments {
    /// How many seeds
    #[arg(long, default_value_t = 100_000)]
    seeds: u64,
    /// The first of them
    #[arg(long, default_value_t = 0)]
    from: u64,
}

/// Builds and runs the programs.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result {
    let mut command = workspace.cargo();
    command.args(["run", "--quiet", "--release", "--package", "kiln", "--example", "order_seeds", "--"]);
    command.args([arguments.from.to_string(), arguments.seeds.to_string()]);
    process::succeed(&mut command)
}
