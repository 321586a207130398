//! A program that is run and recorded.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;
use std::process::{Command, ExitStatus};

use crate::exit_code::Exit;
use crate::failure::Failure;

/// The variable by which a kiln runtime learns where to record.
const VARIABLE: &str = "KILN_TRACE";

/// Runs a program with a file to record into; how it ended.
///
/// # Errors
/// A program that cannot be started, or that recorded nothing.
pub(super) fn run(program: &OsStr, words: &[OsString], file: &Path) -> Result<Exit, Failure> {
    // What an earlier run left must not be taken for a recording of this one.
    if file.is_file() {
        fs::remove_file(file).map_err(|error| Failure::file(file, error))?;
    }
    let place = std::path::absolute(file).map_err(|error| Failure::file(file, error))?;
    let name = program.to_string_lossy();
    let status = Command::new(program).args(words).env(VARIABLE, &place).status();
    let status = status.map_err(|error| {
        Failure::refused(format!("`{name}` cannot be started: {error}")).next("check its name and path")
    })?;
    let ended = exit(status);
    if !file.exists() && ended == Exit::Done {
        let why = format!(
            "`{name}` recorded nothing: it made no kiln runtime, or could not write {}",
            file.display()
        );
        return Err(Failure::refused(why).next("run a program that uses kiln::DeviceRuntime"));
    }
    Ok(ended)
}

#[cfg(unix)]
fn exit(status: ExitStatus) -> Exit {
    use std::os::unix::process::ExitStatusExt;
    // As shells do it.
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    of_code(code)
}

#[cfg(not(unix))]
fn exit(status: ExitStatus) -> Exit {
    of_code(status.code().unwrap_or(1))
}

fn of_code(code: i32) -> Exit {
    if code == 0 { Exit::Done } else { Exit::Program(u8::try_from(code).unwrap_or(1)) }
}
