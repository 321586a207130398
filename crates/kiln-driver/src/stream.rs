//! Streams and events: what is asked for, and how far they are.

use crate::command::Submission;
use crate::handle::{EventId, StreamId};

/// A stream to create.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum StreamRequest {
    /// A new one that waits for no other stream by itself.
    New {
        /// Between the limits of the device; 0 is the usual one.
        priority: i32,
    },
    /// One that another library made; destroying the handle leaves the stream alone.
    Foreign(ForeignHandle),
}

/// An event to create.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum EventRequest {
    /// For order only; the cheapest.
    Plain,
    /// For [`elapsed`](crate::Driver::elapsed) too.
    Timed,
    /// One that another library made.
    Foreign(ForeignHandle),
}

/// A native handle that another library owns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ForeignHandle(u64);

impl ForeignHandle {
    /// A handle to be used by the driver it is given to.
    ///
    /// # Safety
    /// It is a live handle of the right kind in the driver's context and stays so until the driver is told to
    /// destroy its own name for it. An event may also be one of another device of the same process and kind; streams can then wait for it, and
    /// nothing else is done with it.
    pub unsafe fn new(raw: u64) -> Self {
        Self(raw)
    }

    /// The number.
    pub fn raw(self) -> u64 {
        self.0
    }
}

/// What a host can wait for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WaitTarget {
    /// The event, as last signalled; one that was never signalled is done.
    Event(EventId),
    /// Everything submitted to the stream before this call.
    Stream(StreamId),
    /// Nothing: asks a device that checks accesses what it found. Each call answers the oldest finding that was not answered yet as its
    /// error, with the submission it belongs to; done if there is none. Never waits.
    Findings,
}

/// How far a stream is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Progress {
    /// The newest submission.
    pub submitted: Submission,
    /// Everything up to here is known to be done. More may be.
    pub completed: Submission,
}

/// Whether a device can still be used.
#[derive(Clone, Debug)]
pub enum Health {
    /// Nothing is known against it.
    Healthy,
    /// It is lost, and this is why; the error says which submission did it, where that is known.
    Lost(crate::Error),
}

impl Health {
    /// Whether nothing is known against it.
    pub fn is_healthy(&self) -> bool {
        matches!(self, Self::Healthy)
    }
}
