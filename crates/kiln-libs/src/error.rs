//! Why a library operation was not queued.

use kiln_driver::Refusal;
use kiln_operation::OperationError;

/// Why a library operation was not queued. Nothing was changed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LibraryError {
    /// An argument has no meaning for the operation.
    #[error("{operation}: {what}; {hint}")]
    Argument {
        /// The operation, such as `rand.normal`.
        operation: &'static str,
        /// What is wrong.
        what: String,
        /// What to do.
        hint: &'static str,
    },
    /// What the runtime answered.
    #[error(transparent)]
    Runtime(#[from] kiln_runtime::Error),
}

impl From<OperationError> for LibraryError {
    fn from(error: OperationError) -> Self {
        match error {
            OperationError::Shape { operation, what, hint } => Self::Argument { operation, what, hint },
            other => {
                Self::argument("operation", other.to_string(), "describe it with the types of this crate")
            }
        }
    }
}

impl LibraryError {
    pub(crate) fn argument(operation: &'static str, what: impl Into<String>, hint: &'static str) -> Self {
        Self::Argument { operation, what: what.into(), hint }
    }

    /// The runtime's error, if it was one.
    pub fn runtime(&self) -> Option<&kiln_runtime::Error> {
        match self {
            Self::Runtime(error) => Some(error),
            Self::Argument { .. } => None,
        }
    }

    /// The library that cannot be used, if that is why: it is missing, too old or damaged, or it has no algorithm for the operation.
    pub fn library(&self) -> Option<&'static str> {
        match self.runtime()?.driver().and_then(kiln_driver::Error::refusal) {
            Some(Refusal::Library { library, .. }) => Some(library),
            _ => None,
        }
    }
}
