//! `cargo xtask cudarc-suite`: the tests of cudarc. The sources are those that cargo downloaded for the workspace.

use std::time::{Duration, Instant};

use clap::Args;

use crate::driver_table::sources_of_cudarc;
use crate::failure::Result;
use crate::suites::exec_run::ExecRun;
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
    /// Runs with the library of the development profile
    #[arg(long)]
    debug: bool,
    /// Handed to the tests, such as a part of a test's name
    #[arg(last = true)]
    rest: Vec<String>,
}

/// Builds everything, and runs the suite.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result {
    let suite = RustSuite {
        home: workspace.target.join("cudarc-suite"),
        flags: &["--no-default-features", "--features", FEATURES],
        build_environment: &[],
        known: KnownResults::parse(include_str!("cudarc.txt"))?.for_profile(!arguments.debug),
    };
    let exec = ExecRun::build(workspace, !arguments.debug, arguments.seeds, LIMIT)?;
    let program = suite.build(workspace, &sources_of_cudarc(workspace)?)?;
    let toolkit = Toolkit::find_or_fetch(&workspace.target, Search::Everywhere)?;
    let began = Instant::now();
    let judged =
        suite.run(&exec, &program, (THREADS, &arguments.rest), |command| toolkit.set_environment(command));
    println!("{} runs took {:.1} s", arguments.seeds, began.elapsed().as_secs_f64());
    judged
}
