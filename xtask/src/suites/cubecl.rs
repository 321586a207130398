//! `cargo xtask cubecl-suite`: the tests of CubeCL's runtime for CUDA, with the headers of the CUDA toolkit from Python packages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::Args;
use serde_json::Value;

use crate::failure::{Failure, Result};
use crate::process;
use crate::suites::exec_run::ExecRun;
use crate::suites::known_results::KnownResults;
use crate::suites::python_packages;
use crate::suites::rust_suite::RustSuite;
use crate::workspace::Workspace;

const PACKAGE: &str = "cubecl-cuda";
const VERSION: &str = "0.10.0";
/// One at a time: a fault loses the device for all that run.
const THREADS: &str = "1";
const LIMIT: Duration = Duration::from_secs(3600);
/// The compiler that CubeCL loads, and the headers that its kernels include.
const TOOLKIT: [&str; 4] = [
    "nvidia-cuda-nvrtc==13.0.88",
    "nvidia-cuda-runtime==13.0.96",
    "nvidia-cuda-cccl==13.0.85",
    "nvidia-cuda-crt==13.0.88",
];

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

/// Fetches and builds everything, and runs the suite.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result {
    let suite = RustSuite {
        home: workspace.target.join("cubecl-suite"),
        flags: &[],
        // The version whose functions kiln exports, whatever is installed.
        build_environment: &[("CUDARC_CUDA_VERSION", "13000")],
        known: KnownResults::parse(include_str!("cubecl.txt"))?.for_profile(!arguments.debug),
    };
    let exec = ExecRun::build(workspace, !arguments.debug, arguments.seeds, LIMIT)?;
    let package = fetched(workspace, &suite.home)?;
    let program = suite.build(workspace, &package)?;
    let toolkit = python_packages::folder(&suite.home.join("toolkit"), &TOOLKIT)?.join("nvidia/cu13");
    suite.run(&exec, &program, (THREADS, &arguments.rest), |command: &mut Command| {
        command.env("CUDA_PATH", &toolkit).env("LD_LIBRARY_PATH", toolkit.join("lib"));
    })
}

/// The sources as cargo downloads them for an empty package that depends on them.
fn fetched(workspace: &Workspace, home: &Path) -> Result<PathBuf> {
    let folder = home.join("fetch");
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap_or(&folder))
            .map_err(|error| Failure::file("create", &folder, &error))?;
        fs::write(&path, text).map_err(|error| Failure::file("write", &path, &error))
    };
    write("src/lib.rs", "")?;
    let head = "[package]\nname = \"fetch\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n";
    write("Cargo.toml", &format!("{head}\n[dependencies]\n{PACKAGE} = \"={VERSION}\"\n"))?;
    let mut command = workspace.cargo();
    command.current_dir(&folder).args(["metadata", "--format-version", "1"]);
    command.args(["--filter-platform", &format!("{}-unknown-linux-gnu", std::env::consts::ARCH)]);
    let text = process::output(&mut command)?;
    let value: Value = serde_json::from_str(&text)
        .map_err(|error| Failure::new(format!("cargo metadata is not JSON: {error}")))?;
    let packages = value["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let manifest = packages
        .iter()
        .find(|package| package["name"] == PACKAGE)
        .and_then(|package| package["manifest_path"].as_str());
    let root = manifest.and_then(|manifest| Path::new(manifest).parent());
    Ok(root.ok_or_else(|| Failure::new(format!("cargo fetched no {PACKAGE}")))?.to_owned())
}
