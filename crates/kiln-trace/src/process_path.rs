//! Paths with the number of a process in them. Names of files are bytes and need not be text.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// What stands for the number of the process in the name of a file.
const NUMBER: &str = "%p";

/// The path with the number of a process in each place of `%p`.
///
/// ```
/// use kiln_trace::with_process_number;
///
/// assert_eq!(with_process_number("run/rank-%p.kiln".as_ref(), 4711), std::path::Path::new("run/rank-4711.kiln"));
/// ```
pub fn with_process_number(path: &Path, number: u32) -> PathBuf {
    let (mut numbered, mut rest) = (OsString::new(), path.as_os_str().to_owned());
    while let Some((before, behind)) = split_process_number(&rest) {
        numbered.push(before);
        numbered.push(number.to_string());
        rest = behind;
    }
    numbered.push(rest);
    numbered.into()
}

/// What stands before and behind the first `%p`; none if there is no `%p`.
///
/// ```
/// use kiln_trace::split_process_number;
///
/// assert_eq!(split_process_number("rank-%p.kiln".as_ref()), Some(("rank-".into(), ".kiln".into())));
/// assert_eq!(split_process_number("rank.kiln".as_ref()), None);
/// ```
pub fn split_process_number(name: &OsStr) -> Option<(OsString, OsString)> {
    let bytes = name.as_encoded_bytes();
    let at = bytes.windows(NUMBER.len()).position(|part| part == NUMBER.as_bytes())?;
    Some((part(bytes.get(..at)?), part(bytes.get(at + NUMBER.len()..)?)))
}

#[cfg(unix)]
fn part(bytes: &[u8]) -> OsString {
    use std::os::unix::ffi::OsStrExt;
    OsStr::from_bytes(bytes).to_owned()
}

#[cfg(not(unix))]
fn part(bytes: &[u8]) -> OsString {
    String::from_utf8_lossy(bytes).into_owned().into()
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn names_that_are_no_text_keep_their_bytes() {
        let path = Path::new(OsStr::from_bytes(b"a\xff-%p-%p.\xfe"));
        assert_eq!(with_process_number(path, 7).as_os_str().as_bytes(), b"a\xff-7-7.\xfe");
        assert_eq!(with_process_number(Path::new("%"), 7), Path::new("%"));
    }
}
