//! Writes all output files or none.

use std::path::Path;

use super::Array;
use crate::new_file::NewFile;

/// Files that get their names when all of them are written, so that no destination ever holds half an array.
#[derive(Default)]
pub(crate) struct Outputs {
    files: Vec<NewFile>,
}

impl Outputs {
    /// Writes an array to a file without a name. A file that is there keeps its permissions, and a link its place.
    pub(crate) fn add(&mut self, destination: &Path, array: &Array) -> std::io::Result<()> {
        check_limit(array.file_bytes())?;
        let mut file = NewFile::create(destination)?;
        array.write(&mut file)?;
        file.sync()?;
        self.files.push(file);
        Ok(())
    }

    /// Puts all files in their places.
    pub(crate) fn publish(self) -> std::io::Result<()> {
        self.files.into_iter().rev().try_for_each(NewFile::publish)
    }
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
