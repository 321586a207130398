//! A recording on disk, opened for a command.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use kiln_trace::{ReadError, RecordingReader};

use crate::console::complain;
use crate::failure::Failure;
use crate::plural::counted;

/// Blocks that are read at once.
const BUFFER_BYTES: usize = 256 << 10;

/// A recording that is being read.
pub(crate) type OpenRecording = RecordingReader<BufReader<File>>;

/// Opens a recording.
///
/// # Errors
/// A file that cannot be read; something that is no recording, or one of another version.
pub(crate) fn open(path: &Path, skip_damaged: bool) -> Result<OpenRecording, Failure> {
    let file = File::open(path).map_err(|error| Failure::file(path, error))?;
    let from = BufReader::with_capacity(BUFFER_BYTES, file);
    let reader = RecordingReader::new(from).map_err(|error| failure(path, &error))?;
    Ok(if skip_damaged { reader.skipping_damage() } else { reader })
}

/// A recording that cannot be read, or not all of it.
pub(crate) fn failure(path: &Path, error: &ReadError) -> Failure {
    let failure = Failure::file(path, error);
    match (error, error.next_step()) {
        (ReadError::Damaged { offset: 1.., .. }, _) => failure.next("--skip-damaged leaves such blocks out"),
        (_, Some(step)) => failure.next(step),
        (_, None) => failure,
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
    if !reader.is_cut() && !reader.has_end_mark() {
        complain(format_args!(
            "{path}: note: it ended without an end mark: the program was killed or crashed, ended without dropping its runtime, or still runs"
        ));
    }
    if reader.damaged_blocks() > 0 {
        let blocks = counted(reader.damaged_blocks(), "damaged block");
        complain(format_args!("{path}: note: {blocks} left out"));
    }
}
