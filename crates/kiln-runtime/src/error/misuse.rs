//! Requests that cannot be right, on any device. Nothing was queued or stamped.

use std::sync::Arc;

use kiln_order::{OverlappingWrites, SubmitError};

use super::kind::ErrorKind;
use super::stale::Stale;
use crate::ids::BlockId;

/// What is wrong with a request.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Misuse {
    /// The runtime was dropped.
    #[error("the runtime was dropped; keep it alive while its streams and tickets are used")]
    RuntimeGone,
    /// Another control already decides what becomes of the device when it is lost.
    #[error("the device has a control already; there can be one")]
    RecoveryControlled,
    /// A runtime that would lease more streams than its order can tell apart.
    #[error(
        "`RuntimeConfig::max_streams` is {asked}, and a runtime leases at most {most} streams at once; set it to {most} or less"
    )]
    TooManyStreams {
        /// What the configuration asks for.
        asked: usize,
        /// The most there can be.
        most: usize,
    },
    /// A driver that is open in this process cannot move to another.
    #[error(
        "the configuration wants the device in a worker process, and this driver is open here; use `DeviceRuntime::open`"
    )]
    OpenInProcess,
    /// A device whose memory cannot outlive its context.
    #[error(
        "{device} cannot hand its pages to another process, so a worker could not be replaced; use it in this process"
    )]
    NotIsolatable {
        /// The device.
        device: String,
    },
    /// A memory stack that a worker would take along.
    #[error(
        "memory of the base `{base}` goes with its worker process; base the stack on `heap` or `pages`, or use the device in this process"
    )]
    MemoryOfWorker {
        /// The base.
        base: String,
    },
    /// A kind of device that cannot be opened.
    #[error(
        "no device of the kind `{name}` can be opened there; name one that kiln knows, or use a worker that knows it"
    )]
    UnknownBackend {
        /// The kind.
        name: String,
    },
    /// A ticket of another runtime.
    #[error("the ticket belongs to another runtime; wait for it on the host instead")]
    ForeignTicket,
    /// An event of another runtime.
    #[error("the event was taken in by another runtime; import it into the one that is to wait for it")]
    ForeignEvent,
    /// A stream of another runtime.
    #[error("{stream} belongs to another runtime; lease one from the runtime that owns the buffers")]
    ForeignStream {
        /// The stream.
        stream: String,
    },
    /// A request that would wait for a prepared use which the thread that makes it holds.
    #[error(
        "this thread holds a prepared use on {stream} and would wait for itself; finish or drop that first"
    )]
    Prepared {
        /// The stream.
        stream: String,
    },
    /// A block that was freed before it was named.
    #[error("{block} was freed; hold a handle to it until the work that uses it is queued")]
    UseAfterFree {
        /// The block.
        block: BlockId,
    },
    /// A buffer of another runtime.
    #[error("{block} belongs to another runtime; download it and upload it here")]
    ForeignBlock {
        /// The block.
        block: BlockId,
    },
    /// Pinned memory of another runtime.
    #[error("the pinned buffer belongs to another runtime; take one from the runtime that copies it")]
    ForeignPinned,
    /// A memory stack of another device.
    #[error("the memory stack gives out memory of another device; build it over the driver of this runtime")]
    ForeignMemory,
    /// More bytes than there are addresses.
    #[error("{len} elements of {element_bytes} bytes are more than any device can hold; ask for fewer")]
    TooLarge {
        /// Elements.
        len: usize,
        /// Bytes of one.
        element_bytes: usize,
    },
    /// Host data of another length.
    #[error("the buffer has {buffer} elements, and {given} were given; use a view of the right length")]
    Length {
        /// Elements of the buffer.
        buffer: usize,
        /// Elements that were given.
        given: usize,
    },
    /// A view past the end.
    #[error("elements {start}..{end} do not lie inside a buffer of {len}; use a range that does")]
    ViewOutOfRange {
        /// The first.
        start: usize,
        /// One past the last.
        end: usize,
        /// What there is.
        len: usize,
    },
    /// A view where a whole block is needed.
    #[error(
        "{bytes} bytes are a part of a block of {block}, and blocks are lost and kept whole; use the handle it was allocated as"
    )]
    PartOfBlock {
        /// Bytes of the view.
        bytes: u64,
        /// Bytes of its block.
        block: u64,
    },
    /// A wait, in a function that fills a lost block again, for the device that waits for this function.
    #[error(
        "the device is brought back when this function has returned; fill the block from what the host has"
    )]
    WaitWhileHealing,
    /// A write to a block that is mapped read-only.
    #[error("{} is written and its block is sealed, read-only; `unseal` it first", name_of(*argument))]
    Sealed {
        /// Its number.
        argument: u16,
    },
    /// Bytes that are no whole number of elements, or not aligned for them.
    #[error(
        "{bytes} bytes at offset {offset} cannot be elements of {element_bytes} bytes; take a view that begins and ends where such elements do"
    )]
    Cast {
        /// Bytes of the buffer.
        bytes: u64,
        /// Where they begin in their block.
        offset: u64,
        /// Bytes of an element.
        element_bytes: u64,
    },
    /// A copy from bytes to some of the same bytes.
    #[error(
        "the source and the destination of the copy share bytes; copy between buffers or views that do not overlap"
    )]
    CopyOverlap,
    /// Two uses in one submission write the same bytes.
    #[error("{} overlap and are both written; give each different bytes", pair(*first, *second))]
    Overlap {
        /// One of them.
        first: u16,
        /// The other.
        second: u16,
    },
}

impl Misuse {
    /// In place of the number of an argument: a buffer that was declared beside the arguments.
    pub const BESIDE: u16 = u16::MAX;
}

fn pair(first: u16, second: u16) -> String {
    match (first, second) {
        (Misuse::BESIDE, _) | (_, Misuse::BESIDE) => format!("{} and {}", name_of(first), name_of(second)),
        _ => format!("arguments {first} and {second}"),
    }
}

fn name_of(index: u16) -> String {
    match index {
        Misuse::BESIDE => "a buffer declared beside the arguments".into(),
        index => format!("argument {index}"),
    }
}

impl From<kiln_mem::Error> for ErrorKind {
    fn from(error: kiln_mem::Error) -> Self {
        Self::Memory(Arc::new(error))
    }
}

impl From<SubmitError> for ErrorKind {
    fn from(error: SubmitError) -> Self {
        match error {
            SubmitError::Driver(error) => error.into(),
            SubmitError::Lost { .. } => Stale::Lost.into(),
            SubmitError::Held { stream } => Misuse::Prepared { stream: stream.to_string() }.into(),
            SubmitError::Sealed { argument } => Misuse::Sealed { argument }.into(),
            SubmitError::Overlap(OverlappingWrites { first, second }) => {
                Misuse::Overlap { first, second }.into()
            }
        }
    }
}
