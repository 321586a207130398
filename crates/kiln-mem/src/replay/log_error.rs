//! What can be wrong with a log.

use std::fmt;

use crate::last_use::NoSuchStreamKey;

/// A log that cannot be replayed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogError {
    /// The line, counted from 1; in a trace file the record, and 0 for its header.
    pub line: u64,
    /// What is wrong there.
    pub problem: LogProblem,
}

/// What is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LogProblem {
    /// The header does not name a column.
    MissingColumn(&'static str),
    /// A line ends before a column.
    MissingField(&'static str),
    /// A field that cannot be read.
    Field {
        /// The column.
        column: &'static str,
        /// What is there.
        text: String,
    },
    /// A quoted field that does not end where it should.
    Quote(String),
    /// An action that is not known.
    Action(String),
    /// A block at an address that is taken already.
    Taken(u64),
    /// A free of a block that is not live.
    NotLive(u64),
    /// A free of another number of bytes than were allocated.
    OtherSize {
        /// What was allocated.
        allocated: u64,
        /// What is freed.
        freed: u64,
    },
    /// The live bytes cannot be counted any more.
    TooMuch,
    /// It begins like neither kind of log.
    NoTrace,
    /// It ends in the middle.
    Truncated,
    /// A stream that no order can have.
    Stream(NoSuchStreamKey),
    /// A tag without a name, or one too many.
    Tag(String),
    /// It cannot be read.
    Unreadable(String),
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}", self.problem),
            line => write!(f, "line {line}: {}", self.problem),
        }
    }
}

impl std::error::Error for LogError {}

impl fmt::Display for LogProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingColumn(column) => {
                write!(
                    f,
                    "the header has no column `{column}`; RMM writes Thread,Time,Action,Pointer,Size,Stream"
                )
            }
            Self::MissingField(column) => write!(f, "the line ends before `{column}`"),
            Self::Field { column, text } => write!(f, "`{text}` is no {column}"),
            Self::Quote(text) => {
                write!(f, "the quoted field at `{text}` does not end at a comma or at the end of the line")
            }
            Self::Action(text) => {
                write!(f, "`{text}` is no action; there are allocate, free and allocate failure")
            }
            Self::Taken(pointer) => write!(f, "{pointer:#x} is allocated while it is live"),
            Self::NotLive(pointer) => {
                write!(
                    f,
                    "{pointer:#x} is freed and was not live; if the log begins in the middle, read it as partial"
                )
            }
            Self::OtherSize { allocated, freed } => {
                write!(f, "{freed} bytes are freed of a block of {allocated}")
            }
            Self::TooMuch => write!(f, "more bytes are live than can be counted"),
            Self::NoTrace => write!(f, "this is neither a CSV log nor a trace of kiln"),
            Self::Truncated => write!(f, "it ends in the middle"),
            Self::Stream(key) => key.fmt(f),
            Self::Tag(text) | Self::Unreadable(text) => f.write_str(text),
        }
    }
}
