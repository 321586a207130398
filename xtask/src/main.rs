//! The project's own commands: `cargo xtask NAME`.
//!
//! Each command is one file. What they share is small: the [`workspace`] as cargo describes it, a [`process`] that
//! must succeed, and the [`failure`] a command ends with.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "these are commands; printing is what they do")]

mod book;
mod browser;
mod check;
mod corpus;
mod cross;
mod differential;
mod driver_table;
mod failure;
mod fuzz;
mod gpu_bundle;
mod models;
mod process;
mod properties;
mod publish;
mod sanitize;
mod shipped_ptx;
mod sim;
mod skips;
mod suites;
mod test;
mod tidy;
mod toolkit;
mod totals;
mod trace_reader;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::workspace::Workspace;

/// The project's own commands.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Xtask {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs every unit, integration and doc test, and ends with the totals
    Test(test::Arguments),
    /// All checks: format, clippy, tidy, docs, book, tests
    Check(check::Arguments),
    /// The house rules that no compiler knows
    Tidy,
    /// Runs the kernels of local files with every check on, and counts what is found
    Corpus(corpus::Arguments),
    /// Builds the book into target/book
    Book,
    /// Type-checks for other systems: Linux on Arm, macOS, Windows
    Cross(cross::Arguments),
    /// Packages every crate in the order of publishing; uploads nothing
    Publish(publish::Arguments),
    /// Feeds a parser or another reader of foreign input random bytes
    Fuzz(fuzz::Arguments),
    /// Runs random programs against the oracles of the order, for a range of seeds
    Sim(sim::Arguments),
    /// Runs the tests of properties with other random values than `check` uses, seed after seed
    Properties(properties::Arguments),
    /// Runs the parts without a driver under AddressSanitizer, ThreadSanitizer or miri
    Sanitize(sanitize::Arguments),
    /// Runs random programs on the interpreter and, as PTX, on the executor
    Differential(differential::Arguments),
    /// Runs the tests of cudarc on the simulated device, through our libcuda.so.1
    CudarcSuite(suites::cudarc::Arguments),
    /// Runs the tests of CubeCL, in the same way
    CubeclSuite(suites::cubecl::Arguments),
    /// Runs the tests of numba-cuda, in the same way
    NumbaSuite(suites::numba::Arguments),
    /// Writes the list of functions that our libcuda.so.1 exports
    DriverTable,
    /// Compiles the kernels that kiln-libs ships as PTX
    Kernels(shipped_ptx::Arguments),
    /// Writes target/gpu-bundle: the GPU tests and benchmarks for a host that has a driver but no Rust
    GpuBundle(gpu_bundle::Arguments),
    /// Prints where NVRTC, ptxas and the CUDA headers are, for `eval "$(cargo xtask toolkit)"`
    Toolkit(toolkit::Arguments),
}

fn main() -> ExitCode {
    let command = Xtask::parse().command;
    let done = Workspace::load().and_then(|workspace| match command {
        Command::Test(arguments) => test::run(&workspace, &arguments),
        Command::Check(arguments) => check::run(&workspace, &arguments),
        Command::Tidy => tidy::run(&workspace),
        Command::Corpus(arguments) => corpus::run(&workspace, &arguments),
        Command::Book => book::run(&workspace),
        Command::Cross(arguments) => cross::run(&workspace, &arguments),
        Command::Publish(arguments) => publish::run(&workspace, &arguments),
        Command::Fuzz(arguments) => fuzz::run(&workspace, &arguments),
        Command::Sim(arguments) => sim::run(&workspace, &arguments),
        Command::Properties(arguments) => properties::run(&workspace, &arguments),
        Command::Sanitize(arguments) => sanitize::run(&workspace, &arguments),
        Command::Differential(arguments) => differential::run(&workspace, &arguments),
        Command::CudarcSuite(arguments) => suites::cudarc::run(&workspace, &arguments),
        Command::CubeclSuite(arguments) => suites::cubecl::run(&workspace, &arguments),
        Command::NumbaSuite(arguments) => suites::numba::run(&workspace, &arguments),
        Command::DriverTable => driver_table::run(&workspace),
        Command::Kernels(arguments) => shipped_ptx::run(&workspace, &arguments),
        Command::GpuBundle(arguments) => gpu_bundle::run(&workspace, &arguments),
        Command::Toolkit(arguments) => toolkit::run(&workspace, &arguments),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprint!("{failure}");
            ExitCode::FAILURE
        }
    }
}
