//! Tests that could not run, counted.
//!
//! A test binary knows passed, failed and ignored, all decided before a test runs. A test that finds no device appends
//! one line, `name: reason`, to the file an environment variable names; without the variable it just returns.

use std::fs::OpenOptions;
use std::io::Write;

const VARIABLE: &str = "KILN_SKIP_LOG";

/// Notes that a test was skipped.
pub(crate) fn note(test: &str, reason: &str) {
    let Some(path) = std::env::var_os(VARIABLE) else { return };
    // The summary says it as well; a log that cannot be written costs a number in a total.
    if let Ok(mut log) = OpenOptions::new().append(true).create(true).open(path) {
        let _ = log.write_all(format!("{test}: {reason}\n").as_bytes());
    }
}
