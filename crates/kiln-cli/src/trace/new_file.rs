//! A file that is there as a whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file that is written next to its place and then renamed.
pub(super) struct NewFile {
    file: File,
    /// The temporary file and its place; none once it has been renamed.
    rename: Option<(PathBuf, PathBuf)>,
}

impl NewFile {
    /// Begins a file.
    pub(super) fn create(place: &Path) -> io::Result<Self> {
        let place = place.canonicalize().unwrap_or_else(|_| place.to_owned());
        let name = place.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
        let temporary = place.with_file_name(format!(".{name}.{}.part", std::process::id()));
        Ok(Self { file: File::create(&temporary)?, rename: Some((temporary, place)) })
    }

    /// Puts it in its place.
    pub(super) fn publish(mut self) -> io::Result<()> {
        let Some((temporary, place)) = &self.rename else { return Ok(()) };
        self.file.sync_all()?;
        fs::rename(temporary, place)?;
        self.rename = None;
        Ok(())
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for NewFile {
    /// Removes a file that was not finished.
    fn drop(&mut self) {
        if let Some((temporary, _)) = &self.rename {
            let _ = fs::remove_file(temporary);
        }
    }
}
