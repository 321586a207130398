//! Why a submission was not made.

use kiln_driver::{Error, Refusal, StreamId};

use crate::plan_and_publish::{OverlappingWrites, StepRefusal};

/// Why a submission was not made.
#[derive(Debug)]
pub enum SubmitError {
    /// Two uses write the same bytes; nothing was queued or stamped.
    Overlap(OverlappingWrites),
    /// The contents of a block are gone; nothing was queued or stamped.
    Lost {
        /// The caller's number for the use.
        argument: u16,
    },
    /// A block that is sealed would be written; nothing was queued or stamped.
    Sealed {
        /// The caller's number for the use.
        argument: u16,
    },
    /// This thread is inside of a stream that the submission would have to wait for; nothing was queued or stamped.
    Held {
        /// That stream.
        stream: StreamId,
    },
    /// The driver said no.
    Driver(Error),
}

impl From<StepRefusal> for SubmitError {
    fn from(refusal: StepRefusal) -> Self {
        match refusal {
            StepRefusal::Overlap(overlap) => Self::Overlap(overlap),
            StepRefusal::Lost { argument } => Self::Lost { argument },
            StepRefusal::Sealed { argument } => Self::Sealed { argument },
            StepRefusal::Held { stream } => Self::Held { stream },
        }
    }
}

impl From<Error> for SubmitError {
    fn from(error: Error) -> Self {
        Self::Driver(error)
    }
}

impl SubmitError {
    /// The same as an error of a driver, for callers that know no other. Waits use no blocks, so that no block is named.
    pub fn into_driver(self, call: &'static str) -> Error {
        match self {
            Self::Driver(error) => error,
            Self::Held { stream } => held_error(call, stream),
            Self::Overlap(_) | Self::Lost { .. } | Self::Sealed { .. } => {
                Error::invalid(call, "a block that does not take the use", "use another block")
            }
        }
    }
}

/// A stream that takes no more work.
#[cold]
pub(crate) fn given_back(stream: StreamId) -> Error {
    Error::invalid("submit", format!("{stream} was given back"), "use a stream that is leased or imported")
}

/// [`SubmitError::Held`] as an error of the driver.
pub(crate) fn held_error(call: &'static str, stream: StreamId) -> Error {
    let why = "this thread prepared a use of blocks on it; finish or drop that first".to_owned();
    Error::refused(call, Refusal::Busy { handle: stream.to_string(), why })
}
