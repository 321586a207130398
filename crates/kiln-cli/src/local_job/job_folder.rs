//! A folder for the files of a job, which goes with it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// A folder for the files of a job, which goes with it.
pub(crate) struct JobFolder {
    path: PathBuf,
}

impl JobFolder {
    /// Makes the folder, with a name that no one can guess.
    ///
    /// # Errors
    /// The folder for temporary files cannot be written to.
    pub(super) fn new(secret: &str) -> Result<Self, Failure> {
        let name = format!("kiln-launch-{}-{}", std::process::id(), secret.get(..16).unwrap_or_default());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).map_err(|error| {
            Failure::file(&path, error).next("set TMPDIR to a folder that can be written to")
        })?;
        Ok(Self { path })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for JobFolder {
    fn drop(&mut self) {
        // What is left in the folder for temporary files goes with it.
        let _ = fs::remove_dir_all(&self.path);
    }
}
