//! `Refused`: a request that was not carried out, and why.

use std::fmt;

use kiln_driver::Refusal;
use kiln_runtime::{Error, ErrorKind, Stale};

use crate::service_load::Served;

/// Why a request was not carried out, and the request itself, with its buffers.
pub struct Refused<R> {
    /// Why.
    pub why: RefusalReason,
    /// The request, as it was sent.
    pub request: R,
}

/// Why a request was not carried out.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RefusalReason {
    /// As many wait as may.
    #[error("{limit} requests wait already; send it again later, or raise the limit")]
    Full {
        /// How many may wait.
        limit: usize,
    },
    /// The service is shut down, or was dropped.
    #[error("the device service is shut down; start another one")]
    Closed,
    /// The device said no, or was lost.
    #[error(transparent)]
    Device(#[from] Error),
    /// The request panicked.
    #[error("the request panicked: {message}")]
    Panicked {
        /// What it said.
        message: String,
    },
}

impl RefusalReason {
    /// Whether the same request may succeed later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Full { .. } => true,
            Self::Device(error) => error.is_retryable(),
            Self::Closed | Self::Panicked { .. } => false,
        }
    }

    /// Whether another device may carry the same request out: this one failed it, or its service is over. A request that is
    /// wrong by itself is wrong everywhere.
    pub(crate) fn is_of_device(&self) -> bool {
        match self {
            Self::Device(error) => is_of_device(error),
            Self::Closed => true,
            Self::Full { .. } | Self::Panicked { .. } => false,
        }
    }

    /// What it says about the device that the request was started on.
    pub(crate) fn served(&self) -> Served {
        match self {
            Self::Device(error) if is_of_device(error) => Served::DeviceFailed,
            _ => Served::NotMeasured,
        }
    }

    /// The device's error, if it was one.
    pub fn device(&self) -> Option<&Error> {
        match self {
            Self::Device(error) => Some(error),
            Self::Full { .. } | Self::Closed | Self::Panicked { .. } => None,
        }
    }
}

/// Whether an error tells of the device rather than of the request.
fn is_of_device(error: &Error) -> bool {
    let refusal = error.driver().and_then(kiln_driver::Error::refusal);
    match error.kind() {
        ErrorKind::Driver(_) | ErrorKind::Memory(_) => !refusal.is_some_and(is_of_request),
        ErrorKind::Stale(stale) => *stale != Stale::Lost,
        ErrorKind::NotReady { .. }
        | ErrorKind::Probe(_)
        | ErrorKind::Reopen { .. }
        | ErrorKind::StreamsExhausted { .. } => true,
        // An error of another crate may tell of either; a kiln error inside of it knows.
        ErrorKind::Other(error) => error.downcast_ref().is_none_or(is_of_device),
        kind => kind.is_worker_start(),
    }
}

/// Whether a driver refused what no other device would take.
fn is_of_request(refusal: &Refusal) -> bool {
    !matches!(
        refusal,
        Refusal::Busy { .. } | Refusal::Limit { .. } | Refusal::Image { .. } | Refusal::Driver(_)
    )
}

impl<R> Refused<R> {
    /// Whether the same request may succeed later.
    pub fn is_retryable(&self) -> bool {
        self.why.is_retryable()
    }
}

impl<R> fmt::Display for Refused<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.why, f)
    }
}

impl<R> fmt::Debug for Refused<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}", std::any::type_name::<R>(), self.why)
    }
}

impl<R> std::error::Error for Refused<R> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.why.source()
    }
}
