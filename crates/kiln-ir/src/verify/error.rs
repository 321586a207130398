//! Errors of the verifier.

use std::fmt;

use crate::scalar_type::Type;
use crate::source_location::SourceLocation;

/// What is wrong with a draft, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyError {
    /// The statement. For what is declared, the beginning of the text, or [`SourceLocation::Unknown`] where there is none.
    pub location: SourceLocation,
    /// What is wrong with it.
    pub reason: VerifyReason,
}

/// What can be wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyReason {
    /// A name that the text form cannot have.
    #[error("`{name}` is not a name; use letters, digits and `_`, and no word of the language")]
    Name {
        /// The name.
        name: String,
    },
    /// Two things in scope have one name.
    #[error("`{name}` is taken; choose another name")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// An invalid size.
    #[error("{what} is {size}, but {rule}")]
    Size {
        /// What has the size.
        what: String,
        /// The size.
        size: u64,
        /// What it should be.
        rule: String,
    },
    /// A loop that does not go forward.
    #[error("the step is {step}, but must be at least 1; to count down, count up and subtract")]
    Step {
        /// The step.
        step: i64,
    },
    /// A declaration that does not fit the others.
    #[error("{what}")]
    Declaration {
        /// What does not fit, in words.
        what: String,
    },
    /// An operand of the wrong type.
    #[error("{what} must be {expected}, not {found}")]
    Type {
        /// What the operand is for.
        what: String,
        /// What it should be.
        expected: String,
        /// What it is.
        found: Type,
    },
    /// An operation on a type that does not have it.
    #[error("`{operation}` does not exist for {ty}")]
    NoSuchOperation {
        /// The operation.
        operation: String,
        /// The type.
        ty: Type,
    },
    /// A value or variable that does not exist at this place.
    #[error("{what} is not in scope; what a block defines ends with the block")]
    Scope {
        /// What is not there.
        what: String,
    },
    /// Values that are not numbered in the order of their definitions.
    #[error("value {found} is defined where value {expected} is the next one; number values in order")]
    Numbering {
        /// The next number.
        expected: u32,
        /// The number that was used.
        found: u32,
    },
    /// A variable that is read before every path has assigned it.
    #[error("{what} may be read before it has a value; assign it on every path")]
    Unassigned {
        /// The variable.
        what: String,
    },
    /// `break` or `continue` outside of a loop.
    #[error("`{what}` is not in a loop")]
    NoLoop {
        /// Which of them.
        what: &'static str,
    },
    /// A barrier, vote or warp operation that some threads of its group may not reach.
    #[error(
        "`{what}` may not be reached by all threads of the {group}: {why}; move it to where all of them come"
    )]
    Divergent {
        /// The operation.
        what: String,
        /// The threads that must reach it.
        group: &'static str,
        /// Why some may not.
        why: String,
    },
    /// An operand of an operation of a warp that its lanes may have different values of.
    #[error(
        "{what} of `{operation}` may differ between the lanes of a warp: {why}; compute it from what is the same \
         for the warp, as `warp`, `block.x` or a scalar"
    )]
    Varying {
        /// The operand.
        what: String,
        /// The operation.
        operation: String,
        /// Why it may differ.
        why: String,
    },
    /// A matrix in shared memory that may not be aligned as a product needs it.
    #[error(
        "{what} is not seen to be a multiple of {elements} elements, 16 bytes, as a product from shared memory needs; \
         pad the lines of the matrix, and compute it by a product with such a number"
    )]
    Alignment {
        /// The start or stride.
        what: String,
        /// The elements it must be a multiple of.
        elements: u64,
    },
    /// A load from a buffer that is only written, or a store to one that is only read.
    #[error("`{buffer}` is declared `{role}` and cannot be {what}")]
    Access {
        /// The buffer.
        buffer: String,
        /// Its role.
        role: &'static str,
        /// What was tried.
        what: &'static str,
    },
    /// An output without a store.
    #[error("`{buffer}` is an output, but nothing stores to it")]
    MissingOutput {
        /// The buffer.
        buffer: String,
    },
    /// Too many blocks inside each other.
    #[error("blocks are nested deeper than {limit}")]
    Depth {
        /// The most that may be.
        limit: usize,
    },
}

impl VerifyError {
    pub(crate) fn new(location: SourceLocation, reason: VerifyReason) -> Self {
        Self { location, reason }
    }

    /// Whether an operation of a group may not be reached by all its threads.
    pub fn is_divergent(&self) -> bool {
        matches!(self.reason, VerifyReason::Divergent { .. })
    }

    /// Whether types do not fit.
    pub fn is_type(&self) -> bool {
        matches!(self.reason, VerifyReason::Type { .. } | VerifyReason::NoSuchOperation { .. })
    }
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.location {
            SourceLocation::Unknown => write!(f, "{}", self.reason),
            location => write!(f, "{location}: {}", self.reason),
        }
    }
}

impl std::error::Error for VerifyError {}
