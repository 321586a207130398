//! The one error of this crate.
//!
//! It keeps what a caller needs to decide (the kind, the CUDA code, the call, the label of the backend that asked) and
//! answers by predicates. A label is put on at the edge where a backend asked, whatever the kind.

use std::fmt;

use kiln_driver::Code;

/// The answer of most calls here.
pub type Result<T> = std::result::Result<T, Error>;

/// Why kiln could not do what was asked.
#[derive(Clone)]
pub struct Error {
    label: Option<Box<str>>,
    kind: Box<ErrorKind>,
}

/// The kinds of failure.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The device said no.
    #[error(transparent)]
    Driver(#[from] kiln_driver::Error),
    /// The stream pool has given out all it may.
    #[error("all {limit} streams are leased; drop a lease or raise the limit in the configuration")]
    StreamsExhausted {
        /// How many streams the pool may have.
        limit: usize,
    },
}

impl Error {
    /// An error of a kind.
    pub fn new(kind: impl Into<ErrorKind>) -> Self {
        Self { label: None, kind: Box::new(kind.into()) }
    }

    /// The same error with the label of the backend that asked; a label that is there already stays.
    #[must_use]
    pub fn labelled(mut self, label: &str) -> Self {
        self.label.get_or_insert_with(|| label.into());
        self
    }

    /// What went wrong.
    pub fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// The label of the backend that asked, if one did.
    pub fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }

    /// The error of the device, if it is one.
    pub fn driver(&self) -> Option<&kiln_driver::Error> {
        match self.kind() {
            ErrorKind::Driver(error) => Some(error),
            _ => None,
        }
    }

    /// The CUDA code behind it, if there is one.
    pub fn code(&self) -> Option<Code> {
        self.driver().and_then(kiln_driver::Error::code)
    }

    /// Whether freeing memory may help.
    pub fn is_oom(&self) -> bool {
        self.driver().is_some_and(kiln_driver::Error::is_oom)
    }

    /// Whether the device is lost.
    pub fn is_sticky(&self) -> bool {
        self.driver().is_some_and(kiln_driver::Error::is_sticky)
    }

    /// Whether the same request may succeed later.
    pub fn is_retryable(&self) -> bool {
        self.driver().is_some_and(kiln_driver::Error::is_retryable)
            || matches!(self.kind(), ErrorKind::StreamsExhausted { .. })
    }
}

impl<E: Into<ErrorKind>> From<E> for Error {
    fn from(error: E) -> Self {
        Self::new(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(label) = &self.label {
            write!(f, "{label} backend: ")?;
        }
        fmt::Display::fmt(&self.kind, f)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.kind)
    }
}
