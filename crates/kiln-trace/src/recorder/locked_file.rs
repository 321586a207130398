//! A file that only one recorder writes.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use crate::file::special_file;

/// Creates or empties a file, and locks it for as long as it is open. What is no plain file is not locked.
///
/// # Errors
/// A pipe, which would hang the program until it is read; [`ResourceBusy`](io::ErrorKind::ResourceBusy) for a file that another recorder writes, which stays as it is; what the operating system says.
pub(super) fn create(path: &Path) -> io::Result<File> {
    if special_file(path) == Some("a pipe") {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a pipe, and a recording is a file"));
    }
    // Emptied only once it is known that no recorder writes it.
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
    if file.metadata()?.is_file() {
        lock(&file)?;
        file.set_len(0)?;
    }
    Ok(file)
}

#[cfg(unix)]
fn lock(file: &File) -> io::Result<()> {
    use rustix::fs::{FlockOperation, flock};
    use rustix::io::Errno;
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => {
            Err(io::Error::new(io::ErrorKind::ResourceBusy, "another recording is being written to it"))
        }
        // Some file systems have no locks.
        _ => Ok(()),
    }
}

#[cfg(not(unix))]
fn lock(_: &File) -> io::Result<()> {
    Ok(())
}
