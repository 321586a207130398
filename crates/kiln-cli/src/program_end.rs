//! How a program ended that this command ran.

use std::process::ExitStatus;

/// How a program ended.
pub(crate) struct ProgramEnd {
    pub(crate) status: ExitStatus,
    /// Whether this command was told to end.
    pub(crate) is_signalled: bool,
}
