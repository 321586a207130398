//! A file that only one recorder writes.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::recording_failure::RecordingFailure;
use super::recording_file::RecordingFile;
use crate::file::{refused_place, special_file};

/// How long a lock is waited for. A process that the program starts has the lock of a recording that ended, too, from its fork until the
/// program in it runs, which takes some milliseconds on a machine with much to do.
#[cfg(unix)]
const LOCK_LIMIT: std::time::Duration = std::time::Duration::from_millis(250);
#[cfg(unix)]
const LOCK_PAUSE: std::time::Duration = std::time::Duration::from_millis(2);

/// A file that was created by [`create`].
///
/// A program that becomes a daemon closes every descriptor above the standard streams, also ours, and the file that it opens next may get the number. So
/// each write compares the file behind the descriptor with the one that was opened. Where it is another one, it is neither written, cut nor
/// closed. A program that closes and opens between that look and the write, in another thread, is not noticed.
pub(super) struct LockedFile {
    /// None once the program closed it.
    file: Option<File>,
    identity: FileIdentity,
    path: PathBuf,
}

impl LockedFile {
    /// The file, if it is still the one that was opened.
    fn kept(&mut self) -> io::Result<&mut File> {
        let is_kept =
            self.file.as_ref().is_some_and(|file| identity(file).is_ok_and(|now| now == self.identity));
        if !is_kept {
            self.file.take().into_iter().for_each(leave_open);
        }
        self.file.as_mut().ok_or_else(|| RecordingFailure::FileClosed { path: self.path.clone() }.into())
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        // What has our number now is not ours to close.
        let _ = self.kept();
    }
}

impl Write for LockedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.kept()?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.kept()?.flush()
    }
}

impl RecordingFile for LockedFile {
    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        self.kept()?.cut(bytes)
    }

    fn check_room(&self, bytes: u64) -> io::Result<()> {
        self.file.as_ref().map_or(Ok(()), |file| file.check_room(bytes))
    }

    fn check_kept(&mut self) -> io::Result<()> {
        self.kept().map(|_| ())
    }
}

/// What tells a file from all others: the numbers of its device and its inode.
#[cfg(unix)]
type FileIdentity = (u64, u64);

#[cfg(unix)]
fn identity(file: &File) -> io::Result<FileIdentity> {
    use std::os::unix::fs::MetadataExt;
    file.metadata().map(|known| (known.dev(), known.ino()))
}

/// Forgets a file without closing its descriptor.
#[cfg(unix)]
fn leave_open(file: File) {
    use std::os::fd::IntoRawFd;
    let _ = file.into_raw_fd();
}

/// A handle is not a number that the next file gets.
#[cfg(not(unix))]
type FileIdentity = ();

#[cfg(not(unix))]
fn identity(_: &File) -> io::Result<FileIdentity> {
    Ok(())
}

#[cfg(not(unix))]
fn leave_open(_: File) {}

/// Creates or empties a file, and locks it for as long as it is open. A file that is locked is waited for, but no longer than [`LOCK_LIMIT`].
///
/// # Errors
/// An empty name; what is no file: a pipe would hang the program until it is read, and what a device is given is gone; the file behind a standard stream or another open file, whose contents would be lost; [`ResourceBusy`](io::ErrorKind::ResourceBusy) for a file that another recorder writes, which stays as it is; what the operating system says.
pub(super) fn create(path: &Path) -> io::Result<LockedFile> {
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
    let identity = identity(&file)?;
    Ok(LockedFile { file: Some(file), identity, path: path.to_owned() })
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
