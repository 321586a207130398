//! Why a submission was not made.

use kiln_driver::Error;

use super::step::{OverlappingWrites, StepRefusal};

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
    /// The driver said no.
    Driver(Error),
}

impl From<StepRefusal> for SubmitError {
    fn from(refusal: StepRefusal) -> Self {
        match refusal {
            StepRefusal::Overlap(overlap) => Self::Overlap(overlap),
            StepRefusal::Lost { argument } => Self::Lost { argument },
            StepRefusal::Sealed { argument } => Self::Sealed { argument },
        }
    }
}

impl From<Error> for SubmitError {
    fn from(error: Error) -> Self {
        Self::Driver(error)
    }
}
