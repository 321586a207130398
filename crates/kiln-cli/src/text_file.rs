//! A file with text.

use std::path::Path;

use crate::failure::Failure;

/// The text of a file.
pub(crate) fn read_text(path: &Path) -> Result<String, Failure> {
    let bytes = std::fs::read(path).map_err(|error| Failure::file(path, error))?;
    String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        Failure::file(path, format!("the file is not UTF-8 text (byte {offset})"))
    })
}
