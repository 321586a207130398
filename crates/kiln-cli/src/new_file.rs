//! A file that is there as a whole or not at all.
//!
//! On Linux it has no name while it is written, so that nothing is left of it when the command is killed. Where a file system has no such files, it is
//! written beside its place under a hidden name, and what a killed command leaves there is removed by the next one that writes to the same place.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use kiln_trace::refused_place;

use crate::left_behind;

/// How the hidden name ends.
const ENDING: &str = "part";

/// A file that is written without a name, or next to its place, and then renamed.
pub(crate) struct NewFile {
    file: File,
    place: PathBuf,
    /// The hidden name.
    temporary: PathBuf,
    /// Whether the file has that name now.
    is_named: bool,
    /// Its bytes.
    written: u64,
}

impl NewFile {
    /// Begins a file. One that is there keeps its permissions, and a link its place.
    ///
    /// # Errors
    /// The file behind a standard stream, and what else is no file; what the operating system says.
    pub(crate) fn create(place: &Path) -> io::Result<Self> {
        if let Some(what) = refused_place(place) {
            let why = format!("it is {what}, and is not written to");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let (place, temporary) = names(place)?;
        left_behind::remove(&place, ENDING);
        let unnamed = unnamed(&place);
        let is_named = unnamed.is_none();
        let file = match unnamed {
            Some(file) => file,
            None => File::create(&temporary)?,
        };
        // From here on a failure removes it.
        let new = Self { file, place, temporary, is_named, written: 0 };
        if let Ok(known) = new.place.metadata() {
            new.file.set_permissions(known.permissions())?;
        }
        Ok(new)
    }

    /// Waits until all of it is on the disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    /// Puts it in its place.
    pub(crate) fn publish(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        if !self.is_named {
            name(&self.file, &self.temporary)?;
            self.is_named = true;
        }
        fs::rename(&self.temporary, &self.place)?;
        self.is_named = false;
        Ok(())
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        check_size(self.written.saturating_add(bytes.len() as u64))?;
        let written = self.file.write(bytes)?;
        self.written += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for NewFile {
    /// Removes a file that was not finished.
    fn drop(&mut self) {
        if self.is_named {
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// Refuses a size beyond the limit of this process: the write itself would end the process by a signal.
#[cfg(unix)]
fn check_size(bytes: u64) -> io::Result<()> {
    use rustix::process::{Resource, getrlimit};
    match getrlimit(Resource::Fsize).current.is_some_and(|limit| bytes > limit) {
        true => Err(rustix::io::Errno::FBIG.into()),
        false => Ok(()),
    }
}

#[cfg(not(unix))]
fn check_size(_: u64) -> io::Result<()> {
    Ok(())
}

/// Whether a file can be made in a place, as far as that is known before it is tried.
pub(crate) fn check_writable(place: &Path) -> io::Result<()> {
    NewFile::create(place).map(drop)
}

/// What to do about a file that cannot be written; it ends with another place that is to be given.
pub(crate) fn next_step(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "let this user write there, or give another place",
        io::ErrorKind::NotFound => "make the folder, or give another place",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            "make room, or give another place"
        }
        _ => "give another place",
    }
}

/// The place that a link leads to, and the hidden name beside it.
fn names(place: &Path) -> io::Result<(PathBuf, PathBuf)> {
    let place = place.canonicalize().unwrap_or_else(|_| place.to_owned());
    let temporary = left_behind::hidden(&place, ENDING).ok_or(io::ErrorKind::InvalidInput)?;
    Ok((place, temporary))
}

/// A file without a name in the folder of a place; none where there are no such files.
#[cfg(target_os = "linux")]
fn unnamed(place: &Path) -> Option<File> {
    use rustix::fs::{Mode, OFlags};
    let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mode = Mode::from_raw_mode(0o666);
    let file = rustix::fs::open(folder, OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC, mode).ok()?;
    let file = File::from(file);
    // By this it gets its name.
    own_path(&file).exists().then_some(file)
}

#[cfg(target_os = "linux")]
fn name(file: &File, path: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    // What an earlier process with this number left.
    let _ = fs::remove_file(path);
    Ok(linkat(CWD, own_path(file), CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

#[cfg(target_os = "linux")]
fn own_path(file: &File) -> PathBuf {
    use std::os::fd::AsRawFd;
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

#[cfg(not(target_os = "linux"))]
fn unnamed(_: &Path) -> Option<File> {
    None
}

#[cfg(not(target_os = "linux"))]
fn name(_: &File, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_full_disk_asks_for_room() {
        for (kind, asks) in [(io::ErrorKind::PermissionDenied, false), (io::ErrorKind::StorageFull, true)] {
            assert_eq!(next_step(&kind.into()).contains("make room"), asks, "{kind}");
        }
    }
}
