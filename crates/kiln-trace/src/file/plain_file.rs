//! Files that are files: a pipe or a device hangs who opens it.

use std::fs::File;
use std::io;
use std::path::Path;

/// What is at a path that is no plain file, in words; none for a file, and where nothing is.
///
/// ```
/// assert_eq!(kiln_trace::special_file("/dev/null".as_ref()), cfg!(unix).then_some("a device"));
/// assert_eq!(kiln_trace::special_file(&std::env::temp_dir()), Some("a folder"));
/// ```
pub fn special_file(path: &Path) -> Option<&'static str> {
    let kind = path.metadata().ok()?.file_type();
    match (kind.is_file(), kind.is_dir()) {
        (true, _) => None,
        (_, true) => Some("a folder"),
        _ => Some(special(kind)),
    }
}

/// Opens a plain file to read it.
///
/// # Errors
/// A pipe or a device, without opening it ([`InvalidInput`](io::ErrorKind::InvalidInput)); what the operating system says.
pub fn open_plain_file(path: &Path) -> io::Result<File> {
    match special_file(path) {
        None => File::open(path),
        Some(what) => {
            let kind = if path.is_dir() { io::ErrorKind::IsADirectory } else { io::ErrorKind::InvalidInput };
            Err(io::Error::new(kind, format!("it is {what}, and a recording is a file")))
        }
    }
}

#[cfg(unix)]
fn special(kind: std::fs::FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    if kind.is_fifo() {
        "a pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

#[cfg(not(unix))]
fn special(_: std::fs::FileType) -> &'static str {
    "a device"
}
