//! The file of a process: that of the run for the first one, and one beside it for each other.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use kiln_trace::{ProgramRecorder, TraceEvent, with_process_number};

use crate::run_settings;

/// A file of the run's folder that the first process makes.
const TAKEN: &str = "recorded";

/// Begins a recording: in the file that is named, or beside it where another process of the run had that.
pub(super) fn create(file: &Path, first: &[TraceEvent<'static>]) -> io::Result<ProgramRecorder> {
    let own = with_process_number(file, std::process::id());
    if own != file {
        return ProgramRecorder::create(&own, first);
    }
    if is_first() {
        match ProgramRecorder::create(file, first) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {}
            made => return made,
        }
    }
    ProgramRecorder::create(&beside(file, std::process::id()), first)
}

/// Whether no other process of the run was recorded before.
fn is_first() -> bool {
    let Some(folder) = run_settings::folder() else { return true };
    File::options().write(true).create_new(true).open(folder.join(TAKEN)).is_ok()
}

/// The same place with the number of a process before the ending: `run.kiln` becomes `run.4711.kiln`.
fn beside(file: &Path, process: u32) -> PathBuf {
    let number = process.to_string();
    let ending = match file.extension() {
        Some(ending) => [number.as_ref(), ending].join(OsStr::new(".")),
        None => number.into(),
    };
    file.with_extension(ending)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_process_stands_before_the_ending() {
        assert_eq!(beside(Path::new("a/run.kiln"), 7), Path::new("a/run.7.kiln"));
        assert_eq!(beside(Path::new("run"), 7), Path::new("run.7"));
    }
}
