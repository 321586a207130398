//! Tests that need something the machine may lack: left out, counted, and a failure where the machine is said to have it.

use std::io::Write;

use kiln::libraries::{self, Library};

/// Whether NVRTC is missing; then the test is counted as skipped, and fails where `CI` is set.
pub(crate) fn without_nvrtc(test: &str) -> bool {
    let Err(missing) = libraries::find(Library::Nvrtc) else { return false };
    skip(test, "NVRTC", &missing);
    true
}

/// The same for the headers of the CUDA toolkit.
#[allow(dead_code, reason = "one test includes them")]
pub(crate) fn without_headers(test: &str) -> bool {
    let Err(missing) = libraries::headers() else { return false };
    skip(test, "CUDA's headers", &missing);
    true
}

fn skip(test: &str, what: &str, missing: &dyn std::fmt::Display) {
    assert!(std::env::var_os("CI").is_none_or(|value| value != "true"), "{test} needs {what}: {missing}");
    #[expect(clippy::print_stdout, reason = "whoever reads the output of a test sees that it was left out")]
    {
        println!("skipped: {test}: {what} missing");
    }
    if let Some(log) = std::env::var_os("KILN_SKIP_LOG") {
        let file = std::fs::OpenOptions::new().append(true).create(true).open(log);
        // In one piece: other tests write there too.
        let line = format!("{test}: {what} missing\n");
        let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
        assert!(written.is_ok(), "the skip log cannot be written");
    }
}
