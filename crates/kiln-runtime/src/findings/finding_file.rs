//! The file that findings are also written to, where the environment names one.
//!
//! A finding that cannot be written is told on the standard error, with why. `kiln launch --check`, which reads the file, puts another one beside it with `.complete` after its name; that one is removed when a
//! finding could not be written. To remove a file needs no room.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Names the file.
pub const FINDINGS_FILE_VARIABLE: &str = "KILN_FINDINGS_FILE";
/// What the name of the file ends with that is removed when a finding could not be written.
const COMPLETE_SUFFIX: &str = ".complete";

/// The file, once it was opened.
static FILE: Mutex<Option<File>> = Mutex::new(None);

/// Whether the environment names a file.
pub(crate) fn is_asked_for() -> bool {
    path().is_some()
}

/// Writes a finding to the file that `KILN_FINDINGS_FILE` names, as a line. `kiln launch --check` reads it.
pub fn note_finding(finding: &str) {
    let Some(path) = path() else { return };
    let line: Vec<&str> = finding.lines().map(str::trim).collect();
    let line = line.join(" ");
    let mut file = FILE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Err(error) = write(&mut file, &path, &line) {
        // It may have been replaced or have room later.
        *file = None;
        // Where no one counts on it, there is none.
        let _ = std::fs::remove_file(complete(&path));
        let path = path.display();
        // If the standard error cannot be written either, the removed file says it.
        let _ = writeln!(
            io::stderr(),
            "kiln: a finding could not be written to {path}: {error}; let {FINDINGS_FILE_VARIABLE} name a file that can be written to. The finding: {line}"
        );
    }
}

fn path() -> Option<PathBuf> {
    std::env::var_os(FINDINGS_FILE_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// The file beside it that is there as long as all findings were written.
fn complete(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(COMPLETE_SUFFIX);
    name.into()
}

fn write(file: &mut Option<File>, path: &Path, line: &str) -> io::Result<()> {
    let file = match file {
        Some(file) => file,
        None => file.insert(OpenOptions::new().create(true).append(true).open(path)?),
    };
    file.write_all(format!("{line}\n").as_bytes())
}
