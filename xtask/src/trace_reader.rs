//! The packages with which a test reads traces as others do: the schema that Perfetto publishes, and protobuf's own library.
//!
//! They are fetched once, by pip, and the versions are pinned. A machine without them skips the tests that need them.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::suites::python_packages;

/// The variable that names their folder to the tests, and may name it to us.
const VARIABLE: &str = "KILN_PERFETTO_PACKAGES";
const PACKAGES: [&str; 2] = ["perfetto==0.59.1", "protobuf==7.36.2"];

/// Where the packages are; none if they could not be had, and then why is said.
pub(crate) fn find_or_fetch(target: &Path) -> Option<PathBuf> {
    if let Some(named) = std::env::var_os(VARIABLE) {
        return Some(PathBuf::from(named));
    }
    let fetched = python_packages::folder(&target.join("perfetto"), &PACKAGES);
    fetched.inspect_err(|failure| eprint!("{failure}")).ok().or_else(|| {
        eprintln!(
            "{} are not available: install pip for python3, or name their folder with {VARIABLE}",
            PACKAGES.join(" and ")
        );
        None
    })
}

/// Tells a process where the packages are.
pub(crate) fn set_environment(packages: Option<&Path>, command: &mut Command) {
    if let Some(packages) = packages {
        command.env(VARIABLE, packages);
    }
}
