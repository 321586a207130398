//! Why a communicator takes no more calls, though its device goes on and no rank is lost.

use std::sync::Arc;

use kiln_runtime::Error;

use crate::collective_overdue::CollectiveOverdue;
use crate::communicator_failure::CommunicatorFailed;

/// Why a communicator takes no more calls.
#[derive(Clone, Debug)]
pub(crate) enum EndedCommunicator {
    Failed(CommunicatorFailed),
    Overdue(CollectiveOverdue),
}

impl EndedCommunicator {
    /// As a call is told.
    pub(crate) fn error(&self) -> Error {
        match self {
            Self::Failed(failed) => Error::other(failed.clone()),
            Self::Overdue(overdue) => Error::other(overdue.clone()),
        }
    }

    /// As unfinished work is told.
    pub(crate) fn told(&self) -> Arc<dyn std::error::Error + Send + Sync> {
        match self {
            Self::Failed(failed) => Arc::new(failed.clone()),
            Self::Overdue(overdue) => Arc::new(overdue.clone()),
        }
    }
}
