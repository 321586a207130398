//! A recording on disk, opened for a command.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use kiln_trace::{MissingEvents, ReadError, RecordingReader, TraceEvent, open_plain_file};
use kiln_watch::{FilePattern, recordings_in};

use crate::console::complain;
use crate::earlier_recording::put_back;
use crate::failure::Failure;
use crate::plural::counted;

/// Recordings that are read again for what they miss have no more bytes.
const MAX_NOTED_BYTES: u64 = 32 << 20;
/// Blocks that are read at once.
const BUFFER_BYTES: usize = 256 << 10;

/// A recording that is being read.
pub(crate) type OpenRecording = RecordingReader<BufReader<File>>;

/// Opens a recording. One that a killed command moved aside is put back first.
///
/// # Errors
/// A file that cannot be read; something that is no recording, or one of another version.
pub(crate) fn open(path: &Path, skip_damaged: bool) -> Result<OpenRecording, Failure> {
    let mut opened = open_plain_file(path);
    if opened.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) && put_back(path) {
        opened = open_plain_file(path);
    }
    let file = opened.map_err(|error| failure(path, &error.into()))?;
    let from = BufReader::with_capacity(BUFFER_BYTES, file);
    let reader = RecordingReader::new(from).map_err(|error| failure(path, &error))?;
    Ok(if skip_damaged { reader.skipping_damage() } else { reader })
}

/// Puts back those of the files that are missing because a killed command moved them aside.
pub(crate) fn put_missing_back(files: &[PathBuf]) {
    for file in files.iter().filter(|file| !file.exists()) {
        // What is still missing is told where it is opened.
        put_back(file);
    }
}

/// The recordings that are meant: those of a folder, those of a pattern with `%p`, or the file itself.
///
/// # Errors
/// A folder or a pattern without recordings.
pub(crate) fn meant(given: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for path in given {
        let (found, why) = match FilePattern::of(path).filter(|_| !path.exists()) {
            Some(pattern) => (pattern.files(None), "there is no recording with a number in the place of %p"),
            None if path.is_dir() => (recordings_in(path), "there is no recording in this folder"),
            None => (vec![path.clone()], ""),
        };
        if found.is_empty() {
            return Err(Failure::file(path, why).next("give the names of recordings, which end with .kiln"));
        }
        files.extend(found);
    }
    Ok(without_repeats(files))
}

/// Those files that can be read; the others are told, and left out.
///
/// # Errors
/// The first one's, if none can be read.
pub(crate) fn readable(files: Vec<PathBuf>) -> Result<Vec<PathBuf>, Failure> {
    let (mut found, mut failures) = (Vec::new(), Vec::new());
    for file in files {
        match open(&file, false) {
            Ok(_) => found.push(file),
            Err(failure) => failures.push(failure),
        }
    }
    if found.is_empty() && !failures.is_empty() {
        return Err(failures.swap_remove(0));
    }
    failures.iter().for_each(|failure| complain(format_args!("{failure}")));
    Ok(found)
}

/// Each file once: a recording that is named twice is no second rank.
fn without_repeats(files: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut known = HashSet::new();
    let is_new = |file: &PathBuf| {
        let is_new = known.insert(file.canonicalize().unwrap_or_else(|_| file.clone()));
        if !is_new {
            complain(format_args!("{}: note: it is named more than once, and is read once", file.display()));
        }
        is_new
    };
    files.into_iter().filter(is_new).collect()
}

/// Those recordings that are of the same run as the one that was written last. How many others there are is said on the standard error.
pub(crate) fn of_latest_run(files: Vec<PathBuf>) -> Vec<PathBuf> {
    let written = |file: &PathBuf| file.metadata().and_then(|known| known.modified()).ok();
    let Some(latest) = files.iter().filter(|file| run_of(file).is_some()).max_by_key(|file| written(file))
    else {
        return files;
    };
    let latest = run_of(latest);
    let all = files.len();
    // One that cannot be read is told where it is opened.
    let kept: Vec<PathBuf> =
        files.into_iter().filter(|file| run_of(file).is_none_or(|run| Some(run) == latest)).collect();
    if kept.len() < all {
        let others = counted((all - kept.len()) as u64, "recording");
        complain(format_args!("{others} of other runs left out; give the names of files to see them"));
    }
    kept
}

/// The run that a recording is of; none if it cannot be read.
fn run_of(path: &Path) -> Option<String> {
    let mut reader = open(path, false).ok()?;
    match reader.next_event() {
        Ok(Some(TraceEvent::Start(start))) => Some(start.run.to_owned()),
        Ok(_) => Some(String::new()),
        Err(_) => None,
    }
}

/// A recording that cannot be read, or not all of it.
pub(crate) fn failure(path: &Path, error: &ReadError) -> Failure {
    let failure = Failure::file(path, error);
    match (error, error.next_step()) {
        (ReadError::Damaged { offset: 1.., .. }, _) => failure.next("--skip-damaged leaves such blocks out"),
        (_, Some(step)) => failure.next(step),
        (ReadError::Io(error), None) => match error.kind() {
            io::ErrorKind::NotFound => {
                failure.next("give the name of a recording; `kiln trace -- PROGRAM` makes one")
            }
            io::ErrorKind::PermissionDenied => {
                failure.next("let this user read it, or run the command as its owner")
            }
            io::ErrorKind::InvalidInput | io::ErrorKind::IsADirectory => {
                failure.next("give the name of a recording")
            }
            _ => failure,
        },
        (_, None) => failure,
    }
}

/// Says on the standard error that events are missing from a recording that was just made, as for a full disk, and why. A large one is not
/// read for that; `kiln explain` says it of any.
pub(crate) fn note_missing(path: &Path) {
    if path.metadata().map_or(true, |known| known.len() > MAX_NOTED_BYTES) {
        return;
    }
    let Ok(mut reader) = open(path, true) else { return };
    let mut missing = MissingEvents::default();
    while let Ok(Some(event)) = reader.next_event() {
        if let TraceEvent::Dropped(dropped) = event {
            missing.add(&dropped);
        }
    }
    if missing.events() > 0 {
        complain(format_args!("{}: note: {missing}", path.display()));
    }
}

/// Says on the standard error what a recording lacks that was read to its end.
pub(crate) fn note_gaps(path: &Path, reader: &OpenRecording) {
    let path = path.display();
    if reader.is_cut() {
        complain(format_args!(
            "{path}: note: it ends within a block, as the file of a program does that was killed; everything before was read"
        ));
    }
    if reader.damaged_blocks() > 0 && !reader.is_cut() && !reader.has_end_mark() {
        complain(format_args!("{path}: note: it has no end mark; it may be in what is damaged"));
    } else if !reader.is_cut() && !reader.has_end_mark() {
        complain(format_args!(
            "{path}: note: it ended without an end mark: the program was killed or crashed, ended without its exit handlers (`_exit`), or still runs"
        ));
    }
    if reader.damaged_blocks() > 0 {
        let blocks = counted(reader.damaged_blocks(), "damaged block");
        let bytes = counted(reader.skipped_bytes(), "byte");
        complain(format_args!("{path}: note: {blocks} left out ({bytes})"));
    }
}
