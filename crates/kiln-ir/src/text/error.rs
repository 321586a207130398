//! Why a text was not accepted.

use crate::verify::VerifyError;

/// Why a text was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TextError {
    /// It does not follow the grammar, or a name is unknown.
    #[error("{line}:{column}: {what}")]
    Syntax {
        /// The line, from 1.
        line: u32,
        /// The column in characters, from 1.
        column: u32,
        /// What is wrong there.
        what: String,
    },
    /// It was parsed, but does not verify.
    #[error(transparent)]
    Verify(#[from] VerifyError),
}

impl TextError {
    /// Whether it could be read.
    pub fn is_syntax(&self) -> bool {
        matches!(self, Self::Syntax { .. })
    }
}
