//! A reply that is not the output.

use std::fmt;

use kiln_runtime::Error;

/// Why a request was not carried out, and the request itself, with its buffers.
pub struct Refused<R> {
    /// Why.
    pub why: Why,
    /// The request, as it was sent.
    pub request: R,
}

/// Why a request was not carried out.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Why {
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

impl Why {
    /// Whether the same request may succeed later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Full { .. } => true,
            Self::Device(error) => error.is_retryable(),
            Self::Closed | Self::Panicked { .. } => false,
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
