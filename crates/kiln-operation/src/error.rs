//! What is wrong with an operation.

/// Why a text is no operation, or an operation cannot be.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OperationError {
    /// There is no operation of that name.
    #[error("there is no operation `{name}`; there are: {known}")]
    Name {
        /// The name in the text.
        name: String,
        /// All names.
        known: String,
    },
    /// A word of the text is no `key=value`.
    #[error("{operation}: `{word}` is no `key=value`")]
    Word {
        /// The operation.
        operation: &'static str,
        /// The word.
        word: String,
    },
    /// A key that the operation does not have, or that was given twice.
    #[error("{operation}: `{key}` is unknown or given twice; the keys are: {known}")]
    Key {
        /// The operation.
        operation: &'static str,
        /// The key.
        key: String,
        /// The keys of the operation.
        known: String,
    },
    /// A key is missing.
    #[error("{operation}: `{key}` is missing; the keys are: {known}")]
    Missing {
        /// The operation.
        operation: &'static str,
        /// The key.
        key: &'static str,
        /// The keys of the operation.
        known: String,
    },
    /// A value that its key cannot have.
    #[error("{operation}: `{key}={value}`, where {wanted} is expected")]
    Value {
        /// The operation.
        operation: &'static str,
        /// The key.
        key: &'static str,
        /// The value.
        value: String,
        /// What is expected.
        wanted: &'static str,
    },
    /// The values do not fit each other.
    #[error("{operation}: {what}; {hint}")]
    Shape {
        /// The operation.
        operation: &'static str,
        /// What does not fit.
        what: String,
        /// What to do.
        hint: &'static str,
    },
    /// An operand cannot be.
    #[error("{operation}: `{operand}` {what}; {hint}")]
    Operand {
        /// The operation.
        operation: &'static str,
        /// The operand, as the operation names it.
        operand: &'static str,
        /// What it has.
        what: String,
        /// What to do.
        hint: &'static str,
    },
}

impl OperationError {
    pub(crate) fn shape(operation: &'static str, what: impl Into<String>, hint: &'static str) -> Self {
        Self::Shape { operation, what: what.into(), hint }
    }

    pub(crate) fn operand(
        (operation, operand): (&'static str, &'static str),
        what: impl Into<String>,
        hint: &'static str,
    ) -> Self {
        Self::Operand { operation, operand, what: what.into(), hint }
    }
}
