//! A log, checked: every free has its allocation.

use std::io::{BufRead, Read};

use super::log_builder::{LogBuilder, Raw};
use super::log_error::{LogError, LogProblem};
use super::rmm_csv_reader;
use crate::trace::{RecordedTrace, TRACE_MAGIC, read_trace};

/// How a log is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LogOptions {
    /// Whether calls may be missing, as from a log that begins in the middle: frees of blocks that it does not allocate are
    /// left out and counted, and a block of which an address is handed out again was freed before.
    pub partial: bool,
}

/// What was allocated and freed, by which thread and on which stream, in order.
///
/// ```
/// use kiln_mem::replay::{AllocationLog, LogOptions};
///
/// let text = "Thread,Time,Action,Pointer,Size,Stream\n\
///             7,00:00:00.000001,allocate,0x100,64,0x0\n\
///             9,00:00:00.000002,free,0x100,64,0x0\n";
/// let log = AllocationLog::from_csv(text.as_bytes(), LogOptions::default())?;
/// assert_eq!((log.events().len(), log.threads(), log.streams()), (2, 2, 1));
/// assert_eq!(log.peak_bytes(), 64);
/// # Ok::<(), kiln_mem::replay::LogError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AllocationLog {
    pub(super) events: Vec<LogEvent>,
    pub(super) threads: u32,
    pub(super) streams: u32,
    pub(super) blocks: u32,
    pub(super) orphans: u64,
    pub(super) peak_bytes: u64,
}

/// One call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogEvent {
    /// Which thread made it, from 0 on.
    pub thread: u32,
    /// For which stream, from 0 on.
    pub stream: u32,
    /// What it was.
    pub action: LogAction,
}

/// What a call did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogAction {
    /// Allocated a block.
    Allocate {
        /// The block, from 0 on in the order of allocation.
        block: u32,
        /// Its bytes.
        bytes: u64,
    },
    /// Freed a block.
    Free {
        /// Which one.
        block: u32,
    },
    /// Asked for so many bytes and was refused.
    Failed {
        /// How many.
        bytes: u64,
    },
}

impl AllocationLog {
    /// Reads a log, whichever of the known kinds it is.
    ///
    /// # Errors
    /// Where it cannot be read or makes no sense, and why.
    pub fn read(from: &mut impl BufRead, options: LogOptions) -> Result<Self, LogError> {
        let unreadable =
            |error: std::io::Error| LogError { line: 0, problem: LogProblem::Unreadable(error.to_string()) };
        let start = from.fill_buf().map_err(unreadable)?;
        if start.starts_with(&TRACE_MAGIC[..start.len().min(TRACE_MAGIC.len())]) && !start.is_empty() {
            Self::from_trace(from, options)
        } else {
            Self::from_csv(from, options)
        }
    }

    /// Reads what RMM logs, or [`write_rmm_csv`](crate::trace::write_rmm_csv) wrote. Columns may stand in any order, and
    /// others beside them.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn from_csv(from: impl BufRead, options: LogOptions) -> Result<Self, LogError> {
        rmm_csv_reader::read(from, options)
    }

    /// Reads what [`write_trace`](crate::trace::write_trace) wrote. One from which records were dropped is partial by
    /// itself.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn from_trace(from: &mut impl Read, options: LogOptions) -> Result<Self, LogError> {
        Self::from_recorded(&read_trace(from)?, options)
    }

    /// Takes records that were not written to a file.
    ///
    /// # Errors
    /// As for [`read`](Self::read); the line is the number of the record.
    pub fn from_recorded(recorded: &RecordedTrace, options: LogOptions) -> Result<Self, LogError> {
        let partial = options.partial || recorded.dropped > 0;
        let mut builder = LogBuilder::new(LogOptions { partial });
        for (at, record) in recorded.records.iter().enumerate() {
            let raw = Raw { pointer: record.address.0, bytes: record.bytes, action: record.action };
            let (thread, stream) = (record.thread.to_string(), record.stream.index().to_string());
            builder
                .add(&thread, &stream, raw)
                .map_err(|problem| LogError { line: at as u64 + 1, problem })?;
        }
        Ok(builder.finish())
    }

    /// The calls, in order.
    pub fn events(&self) -> &[LogEvent] {
        &self.events
    }

    /// How many threads there are.
    pub fn threads(&self) -> u32 {
        self.threads
    }

    /// How many streams.
    pub fn streams(&self) -> u32 {
        self.streams
    }

    /// How many blocks are allocated.
    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Frees that were left out, because the log does not say what they free.
    pub fn orphans(&self) -> u64 {
        self.orphans
    }

    /// The most bytes that are live at once.
    pub fn peak_bytes(&self) -> u64 {
        self.peak_bytes
    }
}
