//! Tests that need something the machine may lack: left out, counted, and a failure where the machine is said to have it.

#![allow(dead_code, reason = "each test binary uses a part")]

use std::io::Write;

use kiln::libraries::{self, Library};

/// Whether NVRTC is missing; then the test is counted as skipped, and fails where `CI` is set.
pub(crate) fn without_nvrtc(test: &str) -> bool {
    let Err(missing) = libraries::find(Library::Nvrtc) else { return false };
    skip(test, "NVRTC", &missing);
    true
}

/// The same for the headers of the CUDA toolkit.
pub(crate) fn without_headers(test: &str) -> bool {
    let Err(missing) = libraries::headers() else { return false };
    skip(test, "CUDA's headers", &missing);
    true
}

fn skip(test: &str, what: &str, missing: &dyn std::fmt::Display) {
    assert!(std::env::var_os("CI").is_none_or(|value| value != "true"), "{test} needs {what}: {missing}");
    note(test, &format!("{what} missing"));
}

/// Counts a test as skipped.
pub(crate) fn note(test: &str, reason: &str) {
    #[expect(clippy::print_stdout, reason = "the output of a test shows that it was left out")]
    {
        println!("skipped: {test}: {reason}");
    }
    if let Some(log) = std::env::var_os("KILN_SKIP_LOG") {
        let file = std::fs::OpenOptions::new().append(true).create(true).open(log);
        // In one piece: other tests write there too.
        let line = format!("{test}: {reason}\n");
        let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
        assert!(written.is_ok(), "the skip log cannot be written");
    }
}
