//! One run of the command.

use std::process::{Command, Stdio};

use serde_json::Value;

/// How a run ended.
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Outcome {
    /// The standard output as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error} in {}", self.stdout))
    }
}

/// The command with these words, with the policy of this process left behind.
pub(crate) fn command(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kiln"));
    command.args(words).env_remove("KILN_POLICY").env_remove("KILN_SIM_SEED").stdin(Stdio::null());
    // Wide enough that no line is broken.
    command.env("COLUMNS", "400");
    command
}

/// The same on a machine without a driver.
pub(crate) fn without_driver(words: &[&str]) -> Command {
    let mut command = command(words);
    command.env("KILN_LIBCUDA", "/nonexistent/libcuda.so.1");
    command
}

/// Runs it to its end. No run panics, whatever else it does.
pub(crate) fn run(mut command: Command) -> Outcome {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let outcome =
        Outcome { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) };
    assert!(!outcome.stderr.contains("panicked"), "{}", outcome.stderr);
    outcome
}
