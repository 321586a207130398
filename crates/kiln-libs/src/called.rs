//! What messages say of a call that runs as another operation than its name says.

use crate::error::LibraryError;

/// The method that was called, and how it names its result.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Called {
    /// Such as `blas.transpose`.
    pub(crate) call: &'static str,
    /// Such as `c`.
    pub(crate) result: &'static str,
    /// Other operands, as the operation and as the method names them.
    pub(crate) names: &'static [(&'static str, &'static str)],
}

impl Called {
    /// A call whose operands but the result have the names of the operation.
    pub(crate) const fn new(call: &'static str, result: &'static str) -> Self {
        Self { call, result, names: &[] }
    }

    /// What the method calls an operand.
    pub(crate) fn name(&self, operand: &'static str) -> &'static str {
        match self.names.iter().find(|(known, _)| *known == operand) {
            Some((_, name)) => name,
            None if matches!(operand, "c" | "d") => self.result,
            None => operand,
        }
    }

    /// What is wrong with the operation, said of the call.
    pub(crate) fn renamed(&self, error: LibraryError) -> LibraryError {
        match error {
            LibraryError::Argument { what, hint, .. } => {
                LibraryError::Argument { operation: self.call, what, hint }
            }
            error => error.told_of(self.call),
        }
    }
}
