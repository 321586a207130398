//! Tests that count what their process holds: each runs in a process for itself, this binary started again.

use std::process::Command;

/// The test that this process was started for.
const TEST: &str = "KILN_TEST_ALONE";

/// Runs the body of a test in another process. `test` is its full path, as `module_path!()` begins it.
pub(crate) fn alone(test: &str, body: impl FnOnce()) {
    // The name of the crate is not part of the name of a test.
    let test = test.split_once("::").map_or(test, |(_, name)| name);
    if std::env::var(TEST).is_ok_and(|asked| asked == test) {
        return body();
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    let output = child.args([test, "--exact", "--test-threads=1"]).env(TEST, test).output().unwrap();
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{}\n{text}", output.status);
}
