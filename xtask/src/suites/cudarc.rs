//! `cargo xtask cudarc-suite`: the tests of cudarc. The sources are those that cargo downloaded for the workspace.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::driver_table::sources_of_cudarc;
use crate::failure::Result;
use crate::suites::exec_run::{ExecRun, SuiteDevice};
use crate::suites::known_results::KnownResults;
use crate::suites::rust_suite::RustSuite;
use crate::toolkit::{Search, Toolkit};
use crate::workspace::Workspace;

/// What the tests are built with.
const FEATURES: &str = "std,driver,nvrtc,dynamic-loading,f16,cuda-13000";
/// Test threads at a time.
const THREADS: &str = "8";
/// What the tests of all seeds have.
const LIMIT: Duration = Duration::from_secs(1800);

/// What can be said on the command line.
#[derive(Args)]
pub(crate) struct Arguments {
    /// How often the suite runs, each time with the next seed
    #[arg(long, default_value_t = 1)]
    seeds: u64,
    /// The devices that the tests get: simulated ones, or the GPUs of this machine
    #[arg(long, value_enum, default_value_t = SuiteDevice::Sim)]
    device: SuiteDevice,
    /// Runs with the library of the development profile
    #[arg(long)]
    debug: bool,
    /// Handed to the tests, such as a part of a test's name
    #[arg(last = true)]
    rest: Vec<String>,
}

/// Builds everything, and runs the suite.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result {
    arguments.device.check_seeds(arguments.seeds)?;
    let mut suite = suite(workspace)?;
    suite.known = suite.known.for_profile(!arguments.debug || arguments.device == SuiteDevice::Cuda);
    let exec = ExecRun::build(workspace, !arguments.debug, arguments.seeds, LIMIT)?.on(arguments.device);
    let program = suite.build(workspace, &sources_of_cudarc(workspace)?)?;
    let toolkit = Toolkit::find_or_fetch(&workspace.target, Search::Everywhere)?;
    suite.run(&exec, &program, (THREADS, &arguments.rest), |command| toolkit.set_environment(command))
}

fn suite(workspace: &Workspace) -> Result<RustSuite<'static>> {
    Ok(RustSuite {
        home: workspace.target.join("cudarc-suite"),
        flags: &["--no-default-features", "--features", FEATURES],
        build_environment: &[],
        known: KnownResults::parse(include_str!("cudarc.txt"))?,
    })
}

/// The program with the tests, for a machine that has no compiler, and the names of those that may fail, a line each.
pub(crate) fn prebuilt(workspace: &Workspace) -> Result<(PathBuf, String)> {
    let suite = suite(workspace)?;
    let program = suite.build(workspace, &sources_of_cudarc(workspace)?)?;
    let names = suite.known.may_fail().map(|name| format!("{name}\n"));
    Ok((program, names.collect()))
}
