//! Why a recording could not be written.

use std::io;
use std::path::PathBuf;

/// Why a recording misses what was to be written.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingFailure {
    /// The disk took less than it was given. It is written again once it has room.
    #[error("{0}")]
    Disk(String),
    /// The descriptor of the recording was closed by the program, or its number belongs to another file now, which was left alone.
    #[error(
        "the program closed the file descriptor of the recording {}, so that nothing more is written to it; leave descriptors open that the program did not open itself, or begin to record after they are closed",
        path.display()
    )]
    FileClosed {
        /// The recording, which has what was written before.
        path: PathBuf,
    },
    /// This process was forked from the one that records, whose recording has nothing of what this one does.
    #[error(
        "the recording is that of process {process}, from which this one was forked: nothing of this process is in it; fork first, and open a device and record in the process that uses it"
    )]
    Forked {
        /// The process that records.
        process: u32,
    },
}

impl RecordingFailure {
    /// What a write said.
    pub(super) fn of(error: &io::Error) -> Self {
        let own = error.get_ref().and_then(|inner| inner.downcast_ref::<Self>());
        let next_step = match error.kind() {
            io::ErrorKind::FileTooLarge => "allow larger files (`ulimit -f`)",
            _ => "make room on its disk, or record to another one",
        };
        own.cloned().unwrap_or_else(|| Self::Disk(format!("{error}; {next_step}")))
    }
}

impl From<RecordingFailure> for io::Error {
    fn from(failure: RecordingFailure) -> Self {
        Self::other(failure)
    }
}
