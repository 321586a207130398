//! Writes all output files or none.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::Array;

/// Files that are written next to their destinations and then renamed, so that no destination ever holds half an array.
#[derive(Default)]
pub(crate) struct Outputs {
    /// Temporary file and destination.
    files: Vec<(PathBuf, PathBuf)>,
}

impl Outputs {
    /// Writes an array to a temporary file. A file that is there keeps its permissions, and a link its place.
    pub(crate) fn add(&mut self, destination: &Path, array: &Array) -> std::io::Result<()> {
        let (temporary, destination) = beside(destination)?;
        check_limit(array.file_bytes())?;
        self.files.push((temporary.clone(), destination.clone()));
        let mut file = File::create(&temporary)?;
        if let Ok(known) = destination.metadata() {
            file.set_permissions(known.permissions())?;
        }
        array.write(&mut file)?;
        file.sync_all()
    }

    /// Renames all temporary files to their destinations.
    pub(crate) fn publish(mut self) -> std::io::Result<()> {
        while let Some((temporary, destination)) = self.files.pop() {
            if let Err(error) = fs::rename(&temporary, &destination) {
                self.files.push((temporary, destination));
                return Err(error);
            }
        }
        Ok(())
    }
}

/// Makes the temporary file of a destination and removes it, so that a folder that cannot be written is known before the launch.
pub(crate) fn check_writable(destination: &Path) -> std::io::Result<()> {
    let (temporary, _) = beside(destination)?;
    File::create(&temporary)?;
    fs::remove_file(&temporary)
}

/// The temporary file for a destination, and the destination that a link leads to.
fn beside(destination: &Path) -> std::io::Result<(PathBuf, PathBuf)> {
    let destination = destination.canonicalize().unwrap_or_else(|_| destination.to_owned());
    let name = destination.file_name().ok_or(std::io::ErrorKind::InvalidInput)?.to_string_lossy();
    let temporary = destination.with_file_name(format!(".{name}.{}.part", std::process::id()));
    Ok((temporary, destination))
}

/// Refuses a file that the limit of the process does not allow: the signal that a write would get ends the process, and would leave the
/// temporary file behind.
#[cfg(unix)]
fn check_limit(bytes: u64) -> std::io::Result<()> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize).current;
    match limit.filter(|limit| bytes > *limit) {
        None => Ok(()),
        Some(limit) => Err(std::io::Error::new(
            std::io::ErrorKind::FileTooLarge,
            format!("it would have {bytes} bytes, and files of this process may have {limit} (ulimit -f)"),
        )),
    }
}

#[cfg(not(unix))]
fn check_limit(_: u64) -> std::io::Result<()> {
    Ok(())
}

impl Drop for Outputs {
    /// Removes the temporary files that were not renamed.
    fn drop(&mut self) {
        for (temporary, _) in &self.files {
            let _ = fs::remove_file(temporary);
        }
    }
}
