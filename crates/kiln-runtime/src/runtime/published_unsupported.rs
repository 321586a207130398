//! A system on which programs do not publish.

use std::io;
use std::path::PathBuf;

/// The variable that asks for publishing.
pub const TOP_VARIABLE: &str = "KILN_TOP";

/// Refuses.
///
/// # Errors
/// Always: files of a user alone are made on Unix only.
pub fn publish() -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "programs publish on Unix only"))
}

/// Where programs of this user would publish.
pub fn published_folder() -> PathBuf {
    std::env::temp_dir().join("kiln")
}

pub(crate) fn publish_as_environment_says() -> Result<(), kiln_probe::ProbeError> {
    Ok(())
}

pub(crate) fn runtime_ended() {}
