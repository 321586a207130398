//! `cargo xtask cross`: type-checks what is meant to build on other systems, without building for them.
//!
//! A target whose standard library is not installed is added with `rustup`, unless `--no-install` is given.

use std::process::Command;

use clap::Args;

use crate::failure::{Failure, Result};
use crate::process;
use crate::workspace::Workspace;

/// Systems on which the simulator is meant to run.
const TARGETS: [&str; 3] = ["aarch64-unknown-linux-gnu", "aarch64-apple-darwin", "x86_64-pc-windows-msvc"];

/// What is checked for them: the command, and with it every crate it is made of.
const PACKAGES: [&str; 2] = ["kiln", "kiln-cli"];

/// What can be said on the command line.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Checks only targets that are installed
    #[arg(long)]
    no_install: bool,
}

/// Checks every target, also after one failed.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result {
    let mut failed = Vec::new();
    for target in TARGETS {
        println!("\n── {target} ──");
        if let Err(failure) = check(workspace, arguments, target) {
            eprint!("{failure}");
            failed.push(target);
        }
    }
    if failed.is_empty() {
        println!("\n{} targets type-check", TARGETS.len());
        return Ok(());
    }
    Err(Failure::new(format!("does not type-check for {}", failed.join(", "))))
}

fn check(workspace: &Workspace, arguments: &Arguments, target: &str) -> Result {
    if !arguments.no_install {
        process::succeed(Command::new("rustup").args(["target", "add", target]))?;
    }
    let mut command = workspace.cargo();
    command.args(["check", "--target", target]).args(PACKAGES.iter().flat_map(|name| ["--package", name]));
    process::succeed(&mut command)
}
