//! Answers as a trace writes them.

use serde::{Deserialize, Serialize};

use super::handle_name::{Address, Name};
use crate::call::Answer;
use crate::clock::Waited;
use crate::code_image::Function;
use crate::error::{Error, ErrorKind, Refusal};
use crate::handle::DeviceKey;
use crate::stream::Health;

/// An [`Answer`] without lifetimes and keys. Native handles and descriptors differ from run to run and are not
/// written.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum RecordedAnswer {
    Done,
    Descriptor,
    Reservation { reservation: Name, address: Address, bytes: u64 },
    Pages { pages: Name },
    Memory { memory: Name, address: Address, bytes: u64 },
    Host { host: Name, bytes: u64 },
    Stream { stream: Name },
    Event { event: Name },
    Module { module: Name },
    Function(RecordedFunction),
    Graph { graph: Name },
    Submission { number: u64 },
    WaitDone,
    WaitTimedOut,
    Progress { submitted: u64, completed: u64 },
    Elapsed { nanoseconds: u64 },
    Occupancy { blocks_per_multiprocessor: u32, suggested_block_threads: u32, suggested_grid_blocks: u32 },
    MemoryInfo { free_bytes: u64, total_bytes: u64 },
    Healthy,
    Lost(RecordedError),
    Native,
    Error(RecordedError),
}

/// A kernel with what is known of it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordedFunction {
    pub(crate) function: Name,
    pub(crate) max_threads_per_block: u32,
    pub(crate) registers: u32,
    pub(crate) static_shared_bytes: u32,
    pub(crate) local_bytes: u32,
    pub(crate) constant_bytes: u32,
    /// Offset and size of each.
    pub(crate) parameters: Option<Vec<[u32; 2]>>,
}

/// An error by kind; the text is for readers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordedError {
    pub(crate) kind: String,
    pub(crate) code: Option<i32>,
    pub(crate) text: String,
}

impl RecordedAnswer {
    pub(crate) fn of(answer: Result<Answer<'_>, &Error>, here: DeviceKey) -> Self {
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return Self::Error(RecordedError::of(error)),
        };
        match answer {
            Answer::Done => Self::Done,
            Answer::Descriptor => Self::Descriptor,
            Answer::Reservation(made) => Self::Reservation {
                reservation: Name::of(made.id, here),
                address: made.address.into(),
                bytes: made.bytes,
            },
            Answer::Pages(id) => Self::Pages { pages: Name::of(id, here) },
            Answer::Memory(made) => Self::Memory {
                memory: Name::of(made.id, here),
                address: made.address.into(),
                bytes: made.bytes,
            },
            Answer::Host(made) => Self::Host { host: Name::of(made.id(), here), bytes: made.len() as u64 },
            Answer::Stream(id) => Self::Stream { stream: Name::of(id, here) },
            Answer::Event(id) => Self::Event { event: Name::of(id, here) },
            Answer::Module(id) => Self::Module { module: Name::of(id, here) },
            Answer::Function(made) => Self::Function(RecordedFunction::of(made, here)),
            Answer::Graph(id) => Self::Graph { graph: Name::of(id, here) },
            Answer::Submission(submission) => Self::Submission { number: submission.0 },
            Answer::Waited(Waited::Done) => Self::WaitDone,
            Answer::Waited(Waited::TimedOut) => Self::WaitTimedOut,
            Answer::Progress(progress) => {
                Self::Progress { submitted: progress.submitted.0, completed: progress.completed.0 }
            }
            Answer::Elapsed(time) => {
                Self::Elapsed { nanoseconds: u64::try_from(time.as_nanos()).unwrap_or(u64::MAX) }
            }
            Answer::Occupancy(fit) => Self::Occupancy {
                blocks_per_multiprocessor: fit.blocks_per_multiprocessor,
                suggested_block_threads: fit.suggested_block_threads,
                suggested_grid_blocks: fit.suggested_grid_blocks,
            },
            Answer::MemoryInfo(info) => {
                Self::MemoryInfo { free_bytes: info.free_bytes, total_bytes: info.total_bytes }
            }
            Answer::Health(Health::Healthy) => Self::Healthy,
            Answer::Health(Health::Lost(error)) => Self::Lost(RecordedError::of(error)),
            Answer::Native(_) => Self::Native,
        }
    }

    /// The kind of answer in words. A wait that timed out and one that did not are the same kind: which of the two
    /// happens is a matter of time, and a replay has its own.
    pub(crate) fn kind(&self) -> String {
        match self {
            Self::Done => "done".into(),
            Self::Descriptor => "a descriptor".into(),
            Self::Reservation { .. } => "a reservation".into(),
            Self::Pages { .. } => "pages".into(),
            Self::Memory { .. } => "memory".into(),
            Self::Host { .. } => "a host block".into(),
            Self::Stream { .. } => "a stream".into(),
            Self::Event { .. } => "an event".into(),
            Self::Module { .. } => "a module".into(),
            Self::Function(_) => "a function".into(),
            Self::Graph { .. } => "a graph".into(),
            Self::Submission { .. } => "a submission".into(),
            Self::WaitDone | Self::WaitTimedOut => "the end of a wait".into(),
            Self::Progress { .. } => "progress".into(),
            Self::Elapsed { .. } => "a time".into(),
            Self::Occupancy { .. } => "an occupancy".into(),
            Self::MemoryInfo { .. } => "what is free".into(),
            Self::Healthy => "healthy".into(),
            Self::Lost(error) => format!("lost ({})", error.kind),
            Self::Native => "a native handle".into(),
            Self::Error(error) => error.kind.clone(),
        }
    }
}

impl RecordedFunction {
    fn of(function: &Function, here: DeviceKey) -> Self {
        let known = &function.attributes;
        let spans = known.parameters.as_ref();
        Self {
            function: Name::of(function.id, here),
            max_threads_per_block: known.max_threads_per_block,
            registers: known.registers,
            static_shared_bytes: known.static_shared_bytes,
            local_bytes: known.local_bytes,
            constant_bytes: known.constant_bytes,
            parameters: spans.map(|spans| spans.iter().map(|span| [span.offset, span.bytes]).collect()),
        }
    }
}

impl RecordedError {
    fn of(error: &Error) -> Self {
        let kind = match error.kind() {
            ErrorKind::OutOfMemory { .. } => "out of memory".into(),
            ErrorKind::Lost(_) => "lost".into(),
            ErrorKind::Unsupported { .. } => "unsupported".into(),
            ErrorKind::Finding(_) => "finding".into(),
            ErrorKind::Refused(refusal) => format!("refused: {}", refusal_kind(refusal)),
        };
        Self { kind, code: error.code().map(|code| code.0), text: error.to_string() }
    }
}

fn refusal_kind(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::Stale { .. } => "stale",
        Refusal::Foreign { .. } => "foreign",
        Refusal::OutOfRange { .. } => "out of range",
        Refusal::Invalid { .. } => "invalid",
        Refusal::Busy { .. } => "busy",
        Refusal::Limit { .. } => "limit",
        Refusal::Image { .. } => "image",
        Refusal::NotFound { .. } => "not found",
        Refusal::CooperativeResidencyExceeded { .. } => "cooperative residency exceeded",
        Refusal::Library { .. } => "library",
        Refusal::Disagreement { .. } => "disagreement",
        Refusal::Driver(_) => "driver",
    }
}
