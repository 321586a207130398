//! Why a library operation was not queued.

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
}
