//! Processes that must succeed.

use std::process::{Command, Stdio};

use crate::failure::{Failure, Result};

/// Runs a process with our own output and no input, and fails unless it exits with 0.
pub(crate) fn succeed(command: &mut Command) -> Result {
    let status = command.stdin(Stdio::null()).status().map_err(|error| not_started(command, &error))?;
    if status.success() {
        Ok(())
    } else {
        Err(Failure::new(format!("`{}` ended with {status}", line(command))))
    }
}

/// Runs a process and returns what it printed; its errors still go to the terminal.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| not_started(command, &error))?;
    if !output.status.success() {
        return Err(Failure::new(format!("`{}` ended with {}", line(command), output.status)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The failure of a process that could not even be started.
pub(crate) fn not_started(command: &Command, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot start `{}`: {error}; is it installed and on PATH?", line(command)))
}

/// The command as one would type it.
fn line(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    let mut words = vec![program.file_name().unwrap_or(command.get_program()).to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|word| word.to_string_lossy().into_owned()));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_process_is_named_with_its_arguments() {
        let failure = succeed(Command::new("/bin/sh").args(["-c", "exit 3"])).unwrap_err().to_string();
        assert!(failure.contains("`sh -c exit 3`") && failure.contains('3'), "{failure}");
    }

    #[test]
    fn a_missing_program_says_so() {
        let failure = output(&mut Command::new("no-such-program")).unwrap_err().to_string();
        assert!(failure.contains("cannot start `no-such-program`"), "{failure}");
    }
}
