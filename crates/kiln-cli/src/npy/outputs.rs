//! Writes all output files or none.

use std::fs::{self, File};
use std::io::Write;
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
        let destination = &destination.canonicalize().unwrap_or_else(|_| destination.to_owned());
        let name = destination.file_name().ok_or(std::io::ErrorKind::InvalidInput)?.to_string_lossy();
        let temporary = destination.with_file_name(format!(".{name}.{}.part", std::process::id()));
        self.files.push((temporary.clone(), destination.to_owned()));
        let mut file = File::create(&temporary)?;
        if let Ok(known) = destination.metadata() {
            file.set_permissions(known.permissions())?;
        }
        file.write_all(&array.encode())?;
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

impl Drop for Outputs {
    /// Removes the temporary files that were not renamed.
    fn drop(&mut self) {
        for (temporary, _) in &self.files {
            let _ = fs::remove_file(temporary);
        }
    }
}
