//! Reads a text file of limited size.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use crate::failure::Failure;

/// No text is longer.
const LIMIT_BYTES: u64 = 1 << 28;

/// The text of a file.
pub(crate) fn read_text(path: &Path) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    // A pipe may have no writer, and a device no end.
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(Failure::file(path, "it is not a regular file").next("write the text to a file"));
    }
    let read = File::open(path).and_then(|file| file.take(LIMIT_BYTES + 1).read_to_end(&mut bytes));
    read.map_err(|error| {
        let failure = Failure::file(path, &error);
        match error.kind() {
            ErrorKind::NotFound if path.is_relative() => {
                failure.next("check the name, and the folder that kiln was started in")
            }
            ErrorKind::NotFound => failure.next("check the name"),
            ErrorKind::PermissionDenied => failure.next("let this user read the file and enter its folders"),
            _ => failure,
        }
    })?;
    if bytes.len() as u64 > LIMIT_BYTES {
        return Err(Failure::file(path, format!("the file has more than {} MiB", LIMIT_BYTES >> 20)));
    }
    String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        Failure::file(path, format!("the file is not UTF-8 text (byte {offset})"))
    })
}
