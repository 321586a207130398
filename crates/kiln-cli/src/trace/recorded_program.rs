//! A program that is run and recorded.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::SystemTime;

use crate::console::complain;
use crate::exit_code::Exit;
use crate::failure::Failure;

/// The variable by which a kiln runtime learns where to record.
const VARIABLE: &str = "KILN_TRACE";
/// Recordings of further processes that are named.
const MAX_TOLD: usize = 16;

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
pub(crate) fn run(program: &OsStr, words: &[OsString], file: &Path) -> Result<(Exit, bool), Failure> {
    let _earlier = Earlier::move_aside(file)?;
    let place = std::path::absolute(file).map_err(|error| Failure::file(file, error))?;
    let name = program.to_string_lossy();
    let began = SystemTime::now();
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
    for other in recorded_beside(file, began) {
        complain(format_args!("a further process is recorded to {}", other.display()));
    }
    Ok((ended, is_recorded))
}

/// Recordings of further processes of the program, which have their numbers in their names: `run.4711.kiln` beside `run.kiln`.
fn recorded_beside(file: &Path, began: SystemTime) -> Vec<PathBuf> {
    let Some(stem) = file.file_stem() else { return Vec::new() };
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let is_other = |path: &PathBuf| {
        let number = path.file_stem().map(Path::new).filter(|_| path.extension() == file.extension());
        let is_named = number.is_some_and(|number| {
            let is_number = |end: &OsStr| end.to_str().is_some_and(|end| end.parse::<u32>().is_ok());
            number.file_stem() == Some(stem) && number.extension().is_some_and(is_number)
        });
        let changed = || path.metadata().and_then(|known| known.modified());
        is_named && changed().is_ok_and(|changed| changed >= began)
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut others: Vec<PathBuf> = entries.filter(is_other).take(MAX_TOLD).collect();
    others.sort();
    others
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
