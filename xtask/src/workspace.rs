//! The workspace as cargo describes it: where it is, where it builds, which packages it has.
//!
//! Asked once, from the directory the command was typed in, so that a relative `CARGO_TARGET_DIR` means the same to
//! us as to the cargo that started us.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::failure::{Failure, Result};
use crate::process;

/// The workspace.
#[derive(Debug)]
pub(crate) struct Workspace {
    /// The directory with the root manifest.
    pub(crate) root: PathBuf,
    /// Where cargo builds.
    pub(crate) target: PathBuf,
    /// Its members.
    pub(crate) packages: Vec<Package>,
}

/// One member.
#[derive(Debug)]
pub(crate) struct Package {
    /// Its name.
    pub(crate) name: String,
    /// Its manifest, relative to the root.
    pub(crate) manifest: PathBuf,
    /// Its `license` field.
    pub(crate) license: Option<String>,
    /// Whether it may be published.
    pub(crate) published: bool,
    /// Its features, each with what it turns on.
    pub(crate) features: BTreeMap<String, Vec<String>>,
    /// What its manifest names.
    pub(crate) dependencies: Vec<Dependency>,
    /// Its binaries, examples, benchmarks and tests by name.
    pub(crate) targets: Vec<String>,
}

/// One line of a manifest's dependencies.
#[derive(Debug)]
pub(crate) struct Dependency {
    /// The package it names.
    pub(crate) name: String,
    /// Whether only tests, examples and benchmarks see it.
    pub(crate) dev: bool,
    /// The features that it turns on there.
    pub(crate) features: Vec<String>,
}

impl Workspace {
    /// Asks cargo.
    pub(crate) fn load() -> Result<Self> {
        let mut command = Command::new(cargo_path());
        command.args(["metadata", "--no-deps", "--format-version", "1"]);
        let text = process::output(&mut command)?;
        let value = serde_json::from_str(&text)
            .map_err(|error| Failure::new(format!("cargo metadata is not JSON: {error}")))?;
        Self::from_metadata(&value)
            .ok_or_else(|| Failure::new("cargo metadata lacks a field this command needs"))
    }

    fn from_metadata(value: &Value) -> Option<Self> {
        let root = PathBuf::from(value["workspace_root"].as_str()?);
        let target = PathBuf::from(value["target_directory"].as_str()?);
        let packages =
            value["packages"].as_array()?.iter().map(|package| Package::from_metadata(package, &root));
        Some(Self { packages: packages.collect::<Option<_>>()?, root, target })
    }

    /// A cargo that runs in the root and builds where the cargo that started us builds.
    pub(crate) fn cargo(&self) -> Command {
        let mut command = Command::new(cargo_path());
        command.current_dir(&self.root).env("CARGO_TARGET_DIR", &self.target);
        command
    }

    /// A member by name.
    pub(crate) fn package(&self, name: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.name == name)
    }
}

impl Package {
    fn from_metadata(value: &Value, root: &Path) -> Option<Self> {
        let manifest = Path::new(value["manifest_path"].as_str()?);
        let dependencies = value["dependencies"].as_array()?.iter().map(|dependency| {
            let name = dependency["name"].as_str()?.to_owned();
            let features = words(&dependency["features"]);
            Some(Dependency { name, dev: dependency["kind"].as_str() == Some("dev"), features })
        });
        let features = value["features"].as_object();
        let targets =
            value["targets"].as_array()?.iter().map(|target| Some(target["name"].as_str()?.to_owned()));
        Some(Self {
            name: value["name"].as_str()?.to_owned(),
            manifest: manifest.strip_prefix(root).unwrap_or(manifest).to_owned(),
            license: value["license"].as_str().map(str::to_owned),
            // An empty list of registries is `publish = false`.
            published: value["publish"].as_array().is_none_or(|registries| !registries.is_empty()),
            features: features.into_iter().flatten().map(|(name, on)| (name.clone(), words(on))).collect(),
            dependencies: dependencies.collect::<Option<_>>()?,
            targets: targets.collect::<Option<_>>()?,
        })
    }

    /// Whether it has a target of that name.
    pub(crate) fn has_target(&self, name: &str) -> bool {
        self.targets.iter().any(|target| target == name)
    }
}

/// A list of words; none if it is not one.
fn words(value: &Value) -> Vec<String> {
    let list = value.as_array().into_iter().flatten();
    list.filter_map(|word| word.as_str().map(str::to_owned)).collect()
}

fn cargo_path() -> PathBuf {
    std::env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_becomes_packages_with_paths_below_the_root() {
        let value = serde_json::json!({
            "workspace_root": "/w", "target_directory": "/w/target",
            "packages": [{
                "name": "a", "manifest_path": "/w/crates/a/Cargo.toml", "license": "MIT",
                "dependencies": [{"name": "b", "kind": null}, {"name": "c", "kind": "dev"}],
                "targets": [{"name": "a"}, {"name": "cuda"}],
            }],
        });
        let workspace = Workspace::from_metadata(&value).unwrap();
        let package = workspace.package("a").unwrap();
        assert_eq!(package.manifest, Path::new("crates/a/Cargo.toml"));
        let dev: Vec<_> = package.dependencies.iter().map(|d| (d.name.as_str(), d.dev)).collect();
        assert_eq!(dev, [("b", false), ("c", true)]);
        assert!(package.has_target("cuda") && !package.has_target("fuzz"));
        assert!(workspace.package("b").is_none());
    }
}
