//! The file that findings are also written to, where the environment names one.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Names the file.
pub const FINDINGS_FILE_VARIABLE: &str = "KILN_FINDINGS_FILE";

/// Whether the environment names a file.
pub(crate) fn is_asked_for() -> bool {
    std::env::var_os(FINDINGS_FILE_VARIABLE).is_some_and(|path| !path.is_empty())
}

/// Writes a finding to the file that `KILN_FINDINGS_FILE` names, as a line. `kiln launch --check` reads it.
pub fn note_finding(finding: &str) {
    static FILE: OnceLock<Option<Mutex<File>>> = OnceLock::new();
    let open = || {
        let path = std::env::var_os(FINDINGS_FILE_VARIABLE).filter(|path| !path.is_empty())?;
        OpenOptions::new().create(true).append(true).open(path).ok().map(Mutex::new)
    };
    let Some(file) = FILE.get_or_init(open) else { return };
    let line: Vec<&str> = finding.lines().map(str::trim).collect();
    let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
    // Findings are told to the program in any case.
    let _ = file.write_all(format!("{}\n", line.join(" ")).as_bytes());
}
