//! Tests that need a GPU.
//!
//! A test that returns early because there is no GPU looks like one that passed. Behind this gate it is counted: in
//! this process, and as a line in a file whose name the test runner puts into the environment, so that its summary
//! can say how many tests did not run. Where a GPU is required, its absence is an error and the test fails.

use std::fs::OpenOptions;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use kiln_probe::{Absence, Policy, Selection};

use super::Prober;
use crate::error::{Error, Result};
use crate::runtime::DeviceRuntime;

/// The environment variable that names the file skipped tests are written to, one line each.
pub const SKIP_LOG_VARIABLE: &str = "KILN_SKIP_LOG";

static SKIPPED: AtomicU64 = AtomicU64::new(0);

/// The gate's answer.
#[must_use]
pub enum TestGate {
    /// Run the test on this.
    Ready(&'static DeviceRuntime),
    /// Leave the test; it has been counted.
    Skipped(Absence),
}

/// How many tests of this process the gate has turned away.
pub fn skipped_tests() -> u64 {
    SKIPPED.load(Ordering::Relaxed)
}

/// Counts a test that does not run, for gates of other kinds: the line in the log is `label: reason`.
///
/// # Errors
/// The log could not be written, and the skip would be lost.
pub fn count_skip(label: &str, reason: &str) -> Result<()> {
    SKIPPED.fetch_add(1, Ordering::Relaxed);
    let Some(path) = std::env::var_os(SKIP_LOG_VARIABLE).filter(|path| !path.is_empty()) else {
        return Ok(());
    };
    let line = format!("{}: {}\n", one_line(label), one_line(reason));
    // One write of a short line to a file opened for appending is not torn by another process.
    let mut file = OpenOptions::new().create(true).append(true).open(path).map_err(Error::other)?;
    file.write_all(line.as_bytes()).map_err(Error::other)
}

impl Prober {
    /// A device for a test, or a counted skip. The label names the test in errors and in the log.
    ///
    /// # Errors
    /// A fault, always. Absence, under the policy `Required`. A log that cannot be written.
    pub fn gpu_for_test(&self, label: &str) -> Result<TestGate> {
        self.gate(label).map_err(|error| error.labelled(label))
    }

    fn gate(&self, label: &str) -> Result<TestGate> {
        let policy = self.policy()?;
        let absence = match self.choose(Some(policy), &Selection::Best) {
            Ok(runtime) => return Ok(TestGate::Ready(runtime)),
            Err(error) => match error.absence() {
                Some(absence) if policy != Policy::Required => absence.clone(),
                _ => return Err(error),
            },
        };
        count_skip(label, &absence.to_string())?;
        Ok(TestGate::Skipped(absence))
    }
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}
