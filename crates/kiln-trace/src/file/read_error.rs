//! Why a recording cannot be read.

use crate::format::{FORMAT_VERSION, START_BYTES};

/// Why a recording cannot be read, or not all of it.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file is something else.
    #[error("it is no recording of kiln")]
    NoRecording,
    /// The file has nothing in it.
    #[error("it is empty: no recording was begun in it, or its disk had no room for one")]
    Empty,
    /// The file ends before its start does.
    #[error("it ends within its first {START_BYTES} bytes, and nothing was recorded")]
    CutStart,
    /// The file has another version.
    #[error("it has version {found} of the format, and this kiln reads version {FORMAT_VERSION}")]
    OtherVersion {
        /// The version of the file.
        found: u32,
    },
    /// A block does not hold what was written.
    #[error("the block at byte {offset} is damaged: {what}")]
    Damaged {
        /// Where the block begins.
        offset: u64,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The operating system says no.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl ReadError {
    /// Whether one block is damaged. What comes behind it may be readable.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged { .. })
    }

    /// What to do about it.
    pub fn next_step(&self) -> Option<&'static str> {
        match self {
            Self::NoRecording => Some("give a file that kiln recorded"),
            Self::Empty => Some("make room on its disk, and record the program again"),
            Self::CutStart => Some("record the program again"),
            Self::OtherVersion { .. } => Some("use the kiln that recorded it"),
            Self::Damaged { offset: 0, .. } => Some("copy the file again from where it was recorded"),
            Self::Damaged { .. } => Some("copy the file again, or leave the damaged block out"),
            Self::Io(_) => None,
        }
    }
}
