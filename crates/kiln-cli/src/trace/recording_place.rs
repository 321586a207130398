//! Where a program is recorded: one file, or one for each process by its number.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use kiln_trace::{refused_place, split_process_number, with_process_number};
use kiln_watch::FilePattern;

use crate::earlier_recording::is_recorded;
use crate::failure::Failure;

/// What stands for the number of the process.
const NUMBER: &str = "%p";

/// Where a program is recorded.
#[derive(Clone, Debug)]
pub(crate) struct RecordingPlace {
    file: PathBuf,
    /// Where each process has its file.
    pattern: Option<FilePattern>,
}

impl RecordingPlace {
    /// A place that can be recorded to, as far as that is known before it is tried.
    ///
    /// # Errors
    /// A folder, a pipe, a device; a folder that is not there.
    pub(crate) fn new(file: &Path) -> Result<Self, Failure> {
        let folder = folder_of(file);
        if has_number(folder) {
            let why = format!(
                "{NUMBER} stands for the number of the process in the name of a file, not of a folder"
            );
            return Err(Failure::file(file, why));
        }
        check_folder(file)?;
        let behind = file.file_name().and_then(split_process_number).map(|(_, behind)| behind);
        if behind.is_some_and(|behind| has_number(Path::new(&behind))) {
            return Err(Failure::file(file, format!("{NUMBER} may stand in the name once")));
        }
        writable(file)?;
        Ok(Self { file: file.to_owned(), pattern: FilePattern::of(file) })
    }

    /// The file, as it was given.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// The pattern of the files, where each process has its own.
    pub(crate) fn pattern(&self) -> Option<&FilePattern> {
        self.pattern.as_ref()
    }

    /// The recordings that were made since a moment, that of the first process first, where it has its own name.
    pub(crate) fn recorded_since(&self, began: SystemTime) -> Vec<PathBuf> {
        match &self.pattern {
            Some(pattern) => pattern.files(Some(began)),
            None => {
                let own = Some(self.file.clone()).filter(|file| is_recorded(file));
                own.into_iter().chain(self.beside(began)).collect()
            }
        }
    }

    /// Recordings of further processes, which have their numbers in their names: `run.4711.kiln` beside `run.kiln`.
    fn beside(&self, began: SystemTime) -> Vec<PathBuf> {
        let Some(stem) = self.file.file_stem() else { return Vec::new() };
        let dotted = |before: &OsStr, behind: &OsStr| [before, behind].join(OsStr::new("."));
        let behind = self.file.extension().map(|ending| dotted(OsStr::new(""), ending)).unwrap_or_default();
        FilePattern::around(&self.file, &dotted(stem, OsStr::new("")), &behind).files(Some(began))
    }

    /// The same name for something else that is made of a recording: the number in the place of `%p`.
    pub(crate) fn with_number_of(&self, recording: &Path, other: &Path) -> PathBuf {
        match self.pattern.as_ref().and_then(|pattern| pattern.number(recording)) {
            Some(number) => with_process_number(other, number),
            None => other.to_owned(),
        }
    }
}

/// Whether `%p` stands in a path.
fn has_number(path: &Path) -> bool {
    split_process_number(path.as_os_str()).is_some()
}

/// Refuses one trace for the recordings of several processes.
pub(crate) fn check_numbered(out: &Path) -> Result<(), Failure> {
    if has_number(out) {
        return Ok(());
    }
    let what = format!("{NUMBER} gives each process a recording, and {} is one file", out.display());
    Err(Failure::usage(what).next(format!("put {NUMBER} into the name of the trace, too")))
}

/// A place that something can be written to, as far as that is known.
///
/// # Errors
/// An empty name, a folder, a pipe, a device, a standard stream or another open file.
pub(crate) fn writable(file: &Path) -> Result<(), Failure> {
    if file.as_os_str().is_empty() {
        return Err(Failure::usage("the name of the file is empty").next("give the name of a file"));
    }
    match refused_place(file) {
        Some(what) => {
            let why = format!("it is {what}, and is not written to");
            Err(Failure::file(file, why).next("give the name of a file"))
        }
        None => Ok(()),
    }
}

/// Refuses a file in a folder that is not there.
pub(crate) fn check_folder(file: &Path) -> Result<(), Failure> {
    let folder = folder_of(file);
    if !folder.is_dir() {
        let why = format!("there is no folder {}", folder.display());
        return Err(Failure::file(file, why).next("make it, or give another place"));
    }
    Ok(())
}

/// Now, or a little before: the clock of a file system is coarse.
pub(crate) fn beginning() -> SystemTime {
    let now = SystemTime::now();
    now.checked_sub(Duration::from_millis(20)).unwrap_or(now)
}

fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
