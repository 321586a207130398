//! A program that is run and recorded.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use crate::exit_code::Exit;
use crate::failure::Failure;

/// The variable by which a kiln runtime learns where to record.
const VARIABLE: &str = "KILN_TRACE";

/// A recording of an earlier run, moved aside while a program is recorded, so that it is not taken for the new one.
struct Earlier<'f> {
    file: &'f Path,
    aside: Option<PathBuf>,
}

impl<'f> Earlier<'f> {
    fn move_aside(file: &'f Path) -> Result<Self, Failure> {
        let mut aside = None;
        if file.is_file() {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            let place = file.with_file_name(format!(".{name}.{}.earlier", std::process::id()));
            fs::rename(file, &place).map_err(|error| Failure::file(file, error))?;
            aside = Some(place);
        }
        Ok(Self { file, aside })
    }
}

impl Drop for Earlier<'_> {
    /// Puts it back if nothing was recorded in its place.
    fn drop(&mut self) {
        if let Some(aside) = &self.aside {
            let _ =
                if is_recorded(self.file) { fs::remove_file(aside) } else { fs::rename(aside, self.file) };
        }
    }
}

fn is_recorded(file: &Path) -> bool {
    file.metadata().is_ok_and(|known| known.len() > 0)
}

/// Runs a program with a file to record into; how it ended, and whether it recorded something. An earlier recording is replaced only by a new one.
///
/// # Errors
/// A program that cannot be started, or that ended well and recorded nothing.
pub(super) fn run(program: &OsStr, words: &[OsString], file: &Path) -> Result<(Exit, bool), Failure> {
    let _earlier = Earlier::move_aside(file)?;
    let place = std::path::absolute(file).map_err(|error| Failure::file(file, error))?;
    let name = program.to_string_lossy();
    let status = Command::new(program).args(words).env(VARIABLE, &place).status();
    let status = status.map_err(|error| {
        Failure::refused(format!("`{name}` cannot be started: {error}")).next("check its name and path")
    })?;
    let (ended, is_recorded) = (exit(status), is_recorded(file));
    if !is_recorded && ended == Exit::Done {
        let why = format!(
            "`{name}` recorded nothing: it made no kiln runtime, or could not write {}",
            file.display()
        );
        return Err(Failure::refused(why)
            .next("run a program that uses kiln::DeviceRuntime, and make room for the file"));
    }
    Ok((ended, is_recorded))
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
