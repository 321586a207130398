//! Reads a file that may grow, be cut, or be replaced by another.

use std::path::{Path, PathBuf};

use kiln_trace::ReadError;

use crate::recording_index::RecordingIndex;
use crate::recording_source::{PartReader, RecordingSource};

/// Reads what is new in a file.
pub(crate) struct Follower {
    path: PathBuf,
    source: Option<RecordingSource>,
    reader: Option<PartReader>,
    /// Where the first block begins that was not read.
    at: u64,
    identity: Option<u64>,
}

/// What a step of reading did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// There may be more at once.
    Read,
    /// Nothing more is there for now.
    AtEnd,
    /// The file is another one: what was read before is void.
    Replaced,
}

impl Follower {
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), source: None, reader: None, at: 0, identity: None }
    }

    /// The file as it was opened.
    pub(crate) fn source(&self) -> Option<&RecordingSource> {
        self.source.as_ref()
    }

    /// Where the first block begins that was not read.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// Opens the file if it is not open yet.
    ///
    /// # Errors
    /// No recording, one of another version, or a file that is not there or has not even a start.
    pub(crate) fn open(&mut self) -> Result<(), ReadError> {
        if self.source.is_none() {
            let source = RecordingSource::open(&self.path)?;
            self.at = source.first_block();
            self.source = Some(source);
            self.identity = identity(&self.path);
        }
        Ok(())
    }

    /// Reads at most so many events into the index.
    ///
    /// # Errors
    /// What the operating system says.
    pub(crate) fn read(&mut self, index: &mut RecordingIndex, most: usize) -> Result<Step, ReadError> {
        let Some(source) = &mut self.source else { return Ok(Step::AtEnd) };
        if self.reader.is_none() {
            let bytes = source.bytes()?;
            if bytes < self.at || identity(&self.path) != self.identity || !source.has_same_beginning() {
                *self = Self::new(&self.path);
                return Ok(Step::Replaced);
            }
            if bytes == self.at {
                return Ok(Step::AtEnd);
            }
            self.reader = Some(source.part(self.at, u64::MAX)?);
        }
        let Some(reader) = &mut self.reader else { return Ok(Step::AtEnd) };
        for _ in 0..most {
            let offset = reader.offset();
            match reader.next_event() {
                Ok(Some(event)) => index.add(&event, offset),
                Ok(None) => {
                    self.at = reader.offset();
                    index.read_to(self.at);
                    self.reader = None;
                    return Ok(Step::AtEnd);
                }
                Err(ReadError::Damaged { offset, what }) => index.damage(offset, what),
                Err(error) => {
                    self.at = reader.offset();
                    self.reader = None;
                    return Err(error);
                }
            }
        }
        // A block is read again from its beginning only by another reader, which there is none of before this one ends.
        self.at = reader.offset();
        index.read_to(self.at);
        Ok(Step::Read)
    }
}

/// What tells a file from another with the same name.
#[cfg(unix)]
fn identity(path: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).ok().map(|known| known.ino())
}

#[cfg(not(unix))]
fn identity(_: &Path) -> Option<u64> {
    None
}
