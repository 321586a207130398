//! `cargo xtask cudarc-suite`: the tests of cudarc, on the simulated device.
//!
//! The sources are those that cargo downloaded for the workspace; they are copied below `target/` and built there, and none of them is kept. The tests are run by
//! `kiln exec` with the optimised library, and counted.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;

use crate::driver_table::sources_of_cudarc;
use crate::failure::{Failure, Result};
use crate::process;
use crate::toolkit::{Search, Toolkit};
use crate::workspace::Workspace;

/// What the tests are built with.
const FEATURES: &str = "std,driver,nvrtc,dynamic-loading,f16,cuda-13000";
/// Test threads at a time.
const THREADS: &str = "8";

/// What can be said on the command line.
#[derive(Args)]
pub(crate) struct Arguments {
    /// How often the suite runs, each time with the next seed
    #[arg(long, default_value_t = 1)]
    seeds: u64,
    /// Handed to the tests, such as a part of a test's name
    #[arg(last = true)]
    rest: Vec<String>,
}

/// Builds everything, and runs the suite.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result {
    let home = workspace.target.join("cudarc-suite");
    let sources = home.join("sources");
    if !sources.exists() {
        copy(&sources_of_cudarc(workspace)?, &sources)?;
    }
    let mut build = workspace.cargo();
    process::succeed(build.args(["build", "--release", "--package", "kiln-cli", "--package", "kiln-shim"]))?;
    let suite = built(workspace, &home, &sources)?;
    let toolkit = Toolkit::find_or_fetch(&workspace.target, Search::Everywhere)?;
    let mut command = Command::new(workspace.target.join("release/kiln"));
    command.args(["exec", "--seeds", &arguments.seeds.to_string(), "--"]).arg(suite);
    toolkit.set_environment(command.args(["--test-threads", THREADS]).args(&arguments.rest));
    process::succeed(&mut command)
}

/// The test program of the sources.
fn built(workspace: &Workspace, home: &Path, sources: &Path) -> Result<PathBuf> {
    let mut command = workspace.cargo();
    command.current_dir(sources).env("CARGO_TARGET_DIR", home.join("target"));
    command.args(["test", "--lib", "--no-run", "--no-default-features", "--features", FEATURES]);
    command.args(["--message-format", "json"]).stderr(Stdio::inherit());
    let text = process::output(&mut command)?;
    let messages = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let program = messages.filter_map(|message| Some(message["executable"].as_str()?.to_owned())).next_back();
    program.map(PathBuf::from).ok_or_else(|| Failure::new("cargo built no test program of cudarc"))
}

fn copy(from: &Path, to: &Path) -> Result {
    fs::create_dir_all(to).map_err(|error| Failure::file("create", to, &error))?;
    let entries = fs::read_dir(from).map_err(|error| Failure::file("read", from, &error))?;
    for entry in entries.flatten() {
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            copy(&source, &target)?;
        } else {
            fs::copy(&source, &target).map_err(|error| Failure::file("copy", &source, &error))?;
        }
    }
    if to.ends_with("sources") {
        // Without this cargo takes the folder for a part of the workspace around it.
        let manifest = to.join("Cargo.toml");
        let text = fs::read_to_string(&manifest).map_err(|error| Failure::file("read", &manifest, &error))?;
        let text = format!("{text}\n[workspace]\n");
        fs::write(&manifest, text).map_err(|error| Failure::file("write", &manifest, &error))?;
    }
    Ok(())
}
