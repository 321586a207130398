//! A program that is run and recorded.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use kiln::telemetry::DeviceTimes;

use super::recording_place::{RecordingPlace, beginning};
use crate::earlier_recording::Earlier;
use crate::exit_code::Exit;
use crate::failure::Failure;
use crate::program_end::ProgramEnd;
use crate::program_signals::ProgramSignals;
use crate::recorded_run::{self, RUN_VARIABLE};

/// The variable by which a kiln runtime learns where to record.
const VARIABLE: &str = "KILN_TRACE";
/// The variable by which it learns how the device's times are taken.
const TIMES_VARIABLE: &str = "KILN_TRACE_TIMES";

/// How a program is run.
#[derive(Clone, Copy)]
pub(crate) struct RunSettings {
    /// Its standard output goes to the standard error.
    pub(crate) is_json: bool,
    /// How the device's times are taken; as the environment says if that is left out.
    pub(crate) times: Option<DeviceTimes>,
}

/// A program that was recorded.
pub(crate) struct RecordedRun {
    /// How it ended.
    pub(crate) ended: Exit,
    /// Whether this command was told to end.
    pub(crate) is_signalled: bool,
    /// What was recorded, that of the first process first.
    pub(crate) recordings: Vec<PathBuf>,
    /// Why nothing was, and what to do, where that is so.
    pub(crate) why_nothing: Option<Failure>,
}

/// Runs a program with a place to record to; how it ended, and what it recorded. An earlier recording is replaced only by a new one.
///
/// # Errors
/// A program that cannot be started.
pub(crate) fn run(
    (program, words): (&OsStr, &[OsString]),
    place: &RecordingPlace,
    settings: RunSettings,
    mut signals: ProgramSignals,
) -> Result<RecordedRun, Failure> {
    let file = place.file();
    let _earlier = Earlier::move_aside(file)?;
    let whole = std::path::absolute(file).map_err(|error| Failure::file(file, error))?;
    let name = program.to_string_lossy();
    let began = beginning();
    let mut command = Command::new(program);
    command.args(words).env(VARIABLE, &whole).env(RUN_VARIABLE, recorded_run::of_environment());
    if let Some(times) = settings.times {
        command.env(TIMES_VARIABLE, times.to_string());
    }
    if settings.is_json {
        command.stdout(stderr().map_err(|error| Failure::output(format!("the standard error: {error}")))?);
    }
    let ProgramEnd { status, is_signalled } =
        signals.run(&mut command).map_err(|error| cannot_be_started(program, &error))?;
    let (ended, recordings) = (exit(status), place.recorded_since(began));
    let why_nothing = recordings.is_empty().then(|| nothing(&name, file));
    Ok(RecordedRun { ended, is_signalled, recordings, why_nothing })
}

/// Refuses a program that is not there or may not be run, as far as that is known before it is tried.
///
/// # Errors
/// The same as [`run`] has for it.
pub(crate) fn check_program(program: &OsStr) -> Result<(), Failure> {
    let is_path = program.as_encoded_bytes().contains(&b'/');
    let found = match std::env::var_os("PATH").filter(|_| !is_path && cfg!(unix)) {
        Some(folders) => std::env::split_paths(&folders)
            .map(|folder| folder.join(program).metadata())
            .find(Result::is_ok)
            .unwrap_or_else(|| Err(io::Error::new(io::ErrorKind::NotFound, "it is in no folder of PATH"))),
        None if is_path && cfg!(unix) => Path::new(program).metadata(),
        None => return Ok(()),
    };
    found.map(drop).map_err(|error| cannot_be_started(program, &error))
}

fn cannot_be_started(program: &OsStr, error: &io::Error) -> Failure {
    let name = program.to_string_lossy();
    Failure::refused(format!("`{name}` cannot be started: {error}")).next("check its name and path")
}

/// Why a program recorded nothing. How it ended is another matter, which its exit code says.
fn nothing(name: &str, file: &Path) -> Failure {
    if file.metadata().is_ok_and(|known| known.is_file() && known.len() == 0) {
        // It would be taken for a recording that says nothing.
        let _ = fs::remove_file(file);
        let why = format!(
            "`{name}` recorded nothing: {} is empty, because nothing could be written to it",
            file.display()
        );
        return Failure::refused(why).next("make room on its disk, or give another place");
    }
    let why = format!("`{name}` recorded nothing: no kiln runtime began to write {}", file.display());
    Failure::refused(why).next(
        "run a program that makes a kiln::DeviceRuntime; one that could not write the file says so itself",
    )
}

#[cfg(unix)]
fn stderr() -> io::Result<Stdio> {
    use std::os::fd::AsFd;
    Ok(Stdio::from(io::stderr().as_fd().try_clone_to_owned()?))
}

/// Other systems do not keep the two apart.
#[cfg(not(unix))]
fn stderr() -> io::Result<Stdio> {
    Ok(Stdio::inherit())
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
