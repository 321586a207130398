//! A file that only one recorder writes.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use crate::file::{refused_place, special_file};

/// How long a lock is waited for. A process that the program starts has the lock of a recording that ended, too, from its fork until the
/// program in it runs, which takes some milliseconds on a machine with much to do.
#[cfg(unix)]
const LOCK_LIMIT: std::time::Duration = std::time::Duration::from_millis(250);
#[cfg(unix)]
const LOCK_PAUSE: std::time::Duration = std::time::Duration::from_millis(2);

/// Creates or empties a file, and locks it for as long as it is open. A file that is locked is waited for, but no longer than [`LOCK_LIMIT`].
///
/// # Errors
/// An empty name; what is no file: a pipe would hang the program until it is read, and what a device is given is gone; the file behind a standard stream or another open file, whose contents would be lost; [`ResourceBusy`](io::ErrorKind::ResourceBusy) for a file that another recorder writes, which stays as it is; what the operating system says.
pub(super) fn create(path: &Path) -> io::Result<File> {
    if path.as_os_str().is_empty() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the name is empty"));
    }
    if let Some(what) = refused_place(path) {
        let why = format!("it is {what}, and a recording is a file");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    // Emptied only once it is known that no recorder writes it.
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
    lock(&file)?;
    file.set_len(0)?;
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
