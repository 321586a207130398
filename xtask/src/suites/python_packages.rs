//! Python packages of exact versions, below `target/`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Failure, Result};
use crate::process;

/// A folder with the files of packages, for those that are no Python.
pub(crate) fn folder(home: &Path, packages: &[&str]) -> Result<PathBuf> {
    let mut command = Command::new("python3");
    command.args(["-m", "pip", "install", "--no-deps", "--upgrade", "--target"]).arg(home).args(packages);
    once(home, packages, &mut [&mut command])?;
    Ok(home.to_owned())
}

/// The Python of an environment that has packages.
pub(crate) fn environment(home: &Path, packages: &[&str]) -> Result<PathBuf> {
    let python = home.join("bin/python");
    let mut make = Command::new("python3");
    make.args(["-m", "venv"]).arg(home);
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet"]).args(packages);
    once(home, packages, &mut [&mut make, &mut install])?;
    Ok(python)
}

/// Runs commands, unless they were for the same packages before.
fn once(home: &Path, packages: &[&str], commands: &mut [&mut Command]) -> Result {
    let (mark, wanted) = (home.join("packages.txt"), packages.join("\n"));
    if fs::read_to_string(&mark).is_ok_and(|there| there == wanted) {
        return Ok(());
    }
    for command in commands {
        process::succeed(command)?;
    }
    fs::write(&mark, wanted).map_err(|error| Failure::file("write", &mark, &error))
}
