//! Loading a library on systems where this command has no other process for it.

use kiln::libraries::{FoundLibrary, MissingLibrary};

/// The library with the version that it tells.
///
/// # Errors
/// It cannot be used.
pub(super) fn load(found: &FoundLibrary) -> Result<FoundLibrary, MissingLibrary> {
    found.load()
}
