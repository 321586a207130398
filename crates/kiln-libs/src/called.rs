//! What messages say of a call that runs as another operation than its name says.

use crate::error::LibraryError;

/// The method that was called, and how it names its result.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Called {
    /// Such as `blas.transpose`.
    pub(crate) call: &'static str,
    /// Such as `c`.
    pub(crate) result: &'static str,
}

impl Called {
    /// What is wrong with the operation, said of the call.
    pub(crate) fn renamed(&self, error: impl Into<LibraryError>) -> LibraryError {
        match error.into() {
            LibraryError::Argument { what, hint, .. } => {
                LibraryError::Argument { operation: self.call, what, hint }
            }
            error => error,
        }
    }
}
