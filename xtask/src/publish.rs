//! `cargo xtask publish --dry-run`: packages every crate that users get, in the order they would be published, and builds each package as a
//! user would.
//!
//! It uploads nothing. Without `--dry-run` it prints the order and stops: publishing is done by hand, with a token.

use clap::Args;

use crate::failure::{Failure, Result};
use crate::process;
use crate::workspace::{Package, Workspace};

/// What can be said on the command line.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Packages and builds everything, and uploads nothing
    #[arg(long)]
    dry_run: bool,
    /// Packages without building, which takes seconds
    #[arg(long)]
    no_verify: bool,
    /// Takes files that are not committed
    #[arg(long)]
    allow_dirty: bool,
}

/// Runs the dry run, or says what to do.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result {
    let order = order(&workspace.packages)?;
    println!("in this order: {}", order.join(", "));
    if !arguments.dry_run {
        return Err(Failure::new(
            "nothing was published; run `cargo xtask publish --dry-run`, then `cargo publish -p NAME` in the order above",
        ));
    }
    let mut command = workspace.cargo();
    command.arg("package");
    command.args(order.iter().flat_map(|name| ["--package", name]));
    command.args(arguments.no_verify.then_some("--no-verify"));
    command.args(arguments.allow_dirty.then_some("--allow-dirty"));
    process::succeed(&mut command)?;
    println!("{} crates can be packaged; nothing was uploaded", order.len());
    Ok(())
}

/// The published crates, each after those it uses.
fn order(packages: &[Package]) -> Result<Vec<&str>> {
    let mut left: Vec<&Package> = packages.iter().filter(|package| package.published).collect();
    let mut done: Vec<&str> = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let is_ready = |package: &Package| {
            let needs = package.dependencies.iter().filter(|dependency| !dependency.dev);
            needs.clone().all(|need| left.iter().all(|other| other.name != need.name))
        };
        let (ready, rest): (Vec<&Package>, Vec<&Package>) =
            left.iter().copied().partition(|package| is_ready(package));
        if ready.is_empty() {
            let names: Vec<&str> = rest.iter().map(|package| package.name.as_str()).collect();
            return Err(Failure::new(format!(
                "{} use each other, so none can be published first",
                names.join(", ")
            )));
        }
        done.extend(ready.into_iter().map(|package| package.name.as_str()));
        left = rest;
    }
    unpublished(packages, &done).map_or(Ok(done), Err)
}

/// A published crate that uses one that is not.
fn unpublished(packages: &[Package], published: &[&str]) -> Option<Failure> {
    let users = packages.iter().filter(|package| package.published);
    users.flat_map(|package| package.dependencies.iter().map(move |need| (package, need))).find_map(
        |(package, need)| {
            let ours = packages.iter().any(|other| other.name == need.name);
            let missing = ours && !need.dev && !published.contains(&need.name.as_str());
            missing
                .then(|| Failure::new(format!("{} uses {}, which is not published", package.name, need.name)))
        },
    )
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::workspace::Dependency;

    fn package(name: &str, published: bool, needs: &[(&str, bool)]) -> Package {
        let dependencies = needs
            .iter()
            .map(|(name, dev)| Dependency { name: (*name).into(), dev: *dev, features: Vec::new() })
            .collect();
        let manifest = PathBuf::from(format!("crates/{name}/Cargo.toml"));
        Package {
            name: name.into(),
            manifest,
            license: None,
            published,
            features: Default::default(),
            dependencies,
            targets: Vec::new(),
        }
    }

    #[test]
    fn each_crate_comes_after_those_it_uses() {
        let packages = [
            package("top", true, &[("middle", false), ("clap", false)]),
            package("middle", true, &[("bottom", false), ("top", true)]),
            package("tests", false, &[("top", false)]),
            package("bottom", true, &[("middle", true)]),
        ];
        assert_eq!(order(&packages).unwrap(), ["bottom", "middle", "top"]);
    }

    #[test]
    fn what_cannot_be_published_is_named() {
        let circle = [package("a", true, &[("b", false)]), package("b", true, &[("a", false)])];
        assert!(order(&circle).unwrap_err().to_string().contains("use each other"));
        let hidden = [package("a", true, &[("b", false)]), package("b", false, &[])];
        assert!(order(&hidden).unwrap_err().to_string().contains("a uses b, which is not published"));
    }
}
