//! Places that are written to: a separate file, and not one that a process has open under another name.
//!
//! `/dev/stdout` and `/proc/self/fd/1` lead to the file that the shell redirected the standard output to. To empty or replace it would take away
//! what was printed before, and what is printed later would be in a file without a name.

use std::path::Path;

use super::special_file;

/// What is at a path that something is to be written to and that is no separate plain file, in words: a folder, a pipe, a device, a standard
/// stream of this process (also by the name of the file behind it), an open file by its number. None for another file, and where nothing is.
///
/// ```
/// assert_eq!(kiln_trace::refused_place("/dev/null".as_ref()), cfg!(unix).then_some("a device"));
/// assert_eq!(kiln_trace::refused_place(&std::env::temp_dir().join("no-such-file.kiln")), None);
/// ```
pub fn refused_place(path: &Path) -> Option<&'static str> {
    special_file(path).or_else(|| open_file(path))
}

#[cfg(unix)]
fn open_file(path: &Path) -> Option<&'static str> {
    use std::os::fd::AsFd;
    use std::os::unix::fs::MetadataExt;
    let known = path.metadata().ok()?;
    let is_behind = |stream: std::os::fd::BorrowedFd<'_>| {
        let stream = stream.try_clone_to_owned().and_then(|stream| std::fs::File::from(stream).metadata());
        stream.is_ok_and(|stream| (stream.dev(), stream.ino()) == (known.dev(), known.ino()))
    };
    if is_behind(std::io::stdout().as_fd()) {
        return Some("the standard output");
    }
    if is_behind(std::io::stderr().as_fd()) {
        return Some("the standard error");
    }
    if is_behind(std::io::stdin().as_fd()) {
        return Some("the standard input");
    }
    is_numbered(path).then_some("an open file of a process")
}

/// Whether a path leads, maybe by links, into the folder of a process with its open files, such as `/proc/self/fd` or `/dev/fd`.
#[cfg(unix)]
fn is_numbered(path: &Path) -> bool {
    /// As many links as Linux follows.
    const MAX_LINKS: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).to_owned();
        let whole = folder.canonicalize().unwrap_or_default();
        if whole.starts_with("/proc") && whole.ends_with("fd") {
            return true;
        }
        match path.read_link() {
            Ok(target) => path = folder.join(target),
            Err(_) => return false,
        }
    }
    false
}

#[cfg(not(unix))]
fn open_file(_: &Path) -> Option<&'static str> {
    None
}
