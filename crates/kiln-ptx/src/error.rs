//! What is wrong with a text that is not PTX.

use crate::position::Position;

/// Why a text could not be read.
///
/// ```
/// let error = kiln_ptx::PtxModule::parse(".version 9.0\n.target sm_90\n.global .u32 x = ;").unwrap_err();
/// assert_eq!(error.to_string(), "3:18: expected a constant, found `;`");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{position}: {cause}")]
pub struct ParseError {
    position: Position,
    cause: Cause,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Cause {
    #[error("expected {expected}, found {found}")]
    Unexpected { expected: String, found: String },
    #[error("unknown {kind} `{name}`; PTX declares names before they are used")]
    UnknownName { kind: &'static str, name: String },
    #[error("unknown instruction `{name}`; {hint}")]
    UnknownInstruction { name: String, hint: String },
    #[error("`{name}` is declared twice in the same block")]
    DeclaredTwice { name: String },
    #[error("{what} exceeds the limit of {limit}")]
    Limit { what: &'static str, limit: u64 },
    #[error("{0}")]
    Invalid(String),
}

impl ParseError {
    pub(crate) fn new(position: Position, cause: Cause) -> Self {
        Self { position, cause }
    }

    /// Where.
    pub fn position(&self) -> Position {
        self.position
    }

    /// Whether an instruction has a name that PTX does not have.
    pub fn is_unknown_instruction(&self) -> bool {
        matches!(self.cause, Cause::UnknownInstruction { .. })
    }

    /// Whether the text names a register, variable, label or function that is not declared.
    pub fn is_unknown_name(&self) -> bool {
        matches!(self.cause, Cause::UnknownName { .. })
    }

    /// Whether the text exceeds a limit of this crate, such as the depth of nesting.
    pub fn is_limit(&self) -> bool {
        matches!(self.cause, Cause::Limit { .. })
    }
}
