//! Builds the binaries of the bundle and finds where cargo put them.
//!
//! For figures they are built optimised and without symbols, in a profile that exists only here, so that neither the
//! `release` directory nor the debug information a developer wants there is disturbed. Where a bundle is for tests alone, they are
//! those that `cargo xtask test` builds, by the same command, so that nothing is built twice.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::contents::{Item, Outsider, Target};
use crate::failure::{Failure, Result};
use crate::process;
use crate::workspace::Workspace;

const OPTIMISED: [&str; 4] = [
    "--config=profile.bundle.inherits=\"release\"",
    "--config=profile.bundle.debug=0",
    "--config=profile.bundle.strip=\"symbols\"",
    "--profile=bundle",
];

/// How the binaries of the workspace are built.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    /// Optimised, for figures.
    Optimised,
    /// As the tests of this machine are, for tests alone.
    Development,
}

/// Refuses an entry that names a package or target the workspace does not have.
pub(crate) fn check_exists(workspace: &Workspace, item: &Item) -> Result {
    let name = item.target.name();
    if workspace.package(item.package).is_some_and(|package| package.has_target(name)) {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{} has no target `{name}`; correct xtask/src/gpu_bundle/contents.rs",
        item.package
    )))
}

/// The test binaries, in the order of the items.
pub(crate) fn tests(workspace: &Workspace, profile: Profile, items: &[&Item]) -> Result<Vec<PathBuf>> {
    let mut command = workspace.cargo();
    command.args(["test", "--no-run", "--all-features"]);
    executables(workspace, profile, command, items)
}

/// The programs, in the order of the items.
pub(crate) fn programs(workspace: &Workspace, profile: Profile, items: &[&Item]) -> Result<Vec<PathBuf>> {
    let mut command = workspace.cargo();
    match profile {
        Profile::Optimised => command.arg("build"),
        // The tests start programs, and build them with the features of all packages.
        Profile::Development => command.args(["test", "--no-run", "--all-features"]),
    };
    executables(workspace, profile, command, items)
}

/// The library that `kiln exec` gives to programs, which is beside the command there.
pub(crate) fn shim(workspace: &Workspace, profile: Profile) -> Result<PathBuf> {
    if profile == Profile::Development {
        // Built with the tests, where cargo puts it in the folder of dependencies.
        return Ok(workspace.target.join("debug").join("deps").join("libkiln_shim.so"));
    }
    let mut command = workspace.cargo();
    command.arg("build").args(OPTIMISED).args(["--package", "kiln-shim"]);
    process::succeed(&mut command)?;
    Ok(workspace.target.join("bundle").join("libkiln_shim.so"))
}

/// The program of a package that is a separate workspace, or why there is none: it takes crates that nothing else here needs, and a
/// bundle without it is a bundle.
pub(crate) fn outsider(workspace: &Workspace, outsider: &Outsider) -> Result<PathBuf> {
    let target = workspace.target.join(outsider.program);
    let mut command = workspace.cargo();
    command.args(["build", "--release", "--locked", "--manifest-path", outsider.manifest]);
    command.env("CARGO_TARGET_DIR", &target);
    process::succeed(&mut command)?;
    Ok(target.join("release").join(outsider.program))
}

fn executables(
    workspace: &Workspace,
    profile: Profile,
    mut command: Command,
    items: &[&Item],
) -> Result<Vec<PathBuf>> {
    if items.is_empty() {
        return Ok(Vec::new());
    }
    command.arg("--message-format=json-render-diagnostics");
    match profile {
        Profile::Optimised => {
            command.args(OPTIMISED);
            items.iter().for_each(|item| name(&mut command, item));
        }
        // Other packages would mean other features, and everything built again.
        Profile::Development => {
            command.arg("--workspace");
        }
    }
    let messages = process::output(&mut command)?;
    items
        .iter()
        .map(|item| {
            let manifest =
                workspace.package(item.package).map(|package| workspace.root.join(&package.manifest));
            manifest.and_then(|manifest| executable(&messages, &manifest, item.target)).ok_or_else(|| {
                Failure::new(format!("cargo built no `{}` of {}", item.target.name(), item.package))
            })
        })
        .collect()
}

/// Asks for one item.
fn name(command: &mut Command, item: &Item) {
    command.args(["--package", item.package]);
    match item.target {
        Target::Test(name) => command.args(["--test", name]),
        Target::Program(name) => command.args(["--bin", name]),
        Target::Example(name) => command.args(["--example", name]),
    };
}

/// The executable of a target in cargo's messages. A program has another of the same name with its unit tests.
fn executable(messages: &str, manifest: &Path, target: Target) -> Option<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    messages
        .filter(|message| message["manifest_path"].as_str().map(Path::new) == Some(manifest))
        .filter(|message| message["target"]["name"].as_str() == Some(target.name()))
        .filter(|message| message["profile"]["test"].as_bool() == Some(matches!(target, Target::Test(_))))
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_executable_of_the_right_package_is_found() {
        let messages = r#"
            {"reason":"compiler-artifact","manifest_path":"/w/b/Cargo.toml","target":{"name":"cuda"},"profile":{"test":true},"executable":"/t/b"}
            {"reason":"compiler-artifact","manifest_path":"/w/a/Cargo.toml","target":{"name":"a"},"profile":{"test":false},"executable":null}
            {"reason":"compiler-artifact","manifest_path":"/w/a/Cargo.toml","target":{"name":"cuda"},"profile":{"test":true},"executable":"/t/a"}
            not json"#;
        let find = |manifest: &str, name| executable(messages, Path::new(manifest), Target::Test(name));
        assert_eq!(find("/w/a/Cargo.toml", "cuda"), Some(PathBuf::from("/t/a")));
        assert_eq!(find("/w/a/Cargo.toml", "a"), None);
        assert_eq!(find("/w/c/Cargo.toml", "cuda"), None);
    }

    #[test]
    fn a_program_is_not_taken_for_its_unit_tests() {
        let messages = r#"
            {"reason":"compiler-artifact","manifest_path":"/w/Cargo.toml","target":{"name":"kiln"},"profile":{"test":true},"executable":"/t/deps/kiln-1"}
            {"reason":"compiler-artifact","manifest_path":"/w/Cargo.toml","target":{"name":"kiln"},"profile":{"test":false},"executable":"/t/kiln"}"#;
        let found = executable(messages, Path::new("/w/Cargo.toml"), Target::Program("kiln"));
        assert_eq!(found, Some(PathBuf::from("/t/kiln")));
    }
}
