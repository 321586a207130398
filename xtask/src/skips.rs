//! Tests that could not run here, counted and named.
//!
//! A test binary knows passed, failed and ignored, all decided before the test runs. Whether there is a GPU is
//! known only inside the test. So a test that finds it cannot run appends one line, `name: reason`, to the file that
//! the environment variable `KILN_SKIP_LOG` names, and returns; appending one line at once is safe between
//! processes. Without the variable the test just returns.

use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};

/// The variable that names the log.
pub(crate) const VARIABLE: &str = "KILN_SKIP_LOG";

/// The log of one run.
pub(crate) struct SkipLog {
    path: PathBuf,
}

impl SkipLog {
    /// An empty log in a directory.
    pub(crate) fn create(directory: &Path) -> Result<Self> {
        std::fs::create_dir_all(directory).map_err(|error| Failure::file("create", directory, &error))?;
        let path = directory.join(format!("skips-{}.log", std::process::id()));
        std::fs::write(&path, "").map_err(|error| Failure::file("write", &path, &error))?;
        Ok(Self { path })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The lines that were written, sorted.
    pub(crate) fn read(&self) -> Result<Vec<String>> {
        let text =
            std::fs::read_to_string(&self.path).map_err(|error| Failure::file("read", &self.path, &error))?;
        let mut lines: Vec<String> =
            text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect();
        lines.sort();
        Ok(lines)
    }
}

impl Drop for SkipLog {
    fn drop(&mut self) {
        // A log left behind is litter below target/ and nothing else.
        let _ = std::fs::remove_file(&self.path);
    }
}
