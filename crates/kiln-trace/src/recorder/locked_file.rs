//! A file that only one recorder writes.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use crate::file::special_file;

/// How long a lock is waited for. A process that the program starts has the lock of a recording that ended, too, from its fork until the
/// program in it runs, which takes some milliseconds on a machine with much to do.
#[cfg(unix)]
const LOCK_LIMIT: std::time::Duration = std::time::Duration::from_millis(250);
#[cfg(unix)]
const LOCK_PAUSE: std::time::Duration = std::time::Duration::from_millis(2);

/// Creates or empties a file, and locks it for as long as it is open. What is no plain file is not locked. A file that is locked is waited for,
/// but no longer than [`LOCK_LIMIT`].
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

/// Whether a recorder writes this file, of whatever process; false where files have no locks.
pub fn is_being_recorded(path: &Path) -> bool {
    special_file(path).is_none()
        && File::open(path)
            .is_ok_and(|file| lock(&file).is_err_and(|error| error.kind() == io::ErrorKind::ResourceBusy))
}

#[cfg(unix)]
fn lock(file: &File) -> io::Result<()> {
    use rustix::fs::{FlockOperation, flock};
    use rustix::io::Errno;
    let began = std::time::Instant::now();
    while flock(file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
        if began.elapsed() >= LOCK_LIMIT {
            let what = "another recording is being written to it";
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, what));
        }
        std::thread::sleep(LOCK_PAUSE);
    }
    // Some file systems have no locks.
    Ok(())
}

#[cfg(not(unix))]
fn lock(_: &File) -> io::Result<()> {
    Ok(())
}
