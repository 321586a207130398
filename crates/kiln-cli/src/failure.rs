//! Why a command could not do what it was asked.

use std::fmt::Display;
use std::path::Path;

use crate::exit::Exit;

/// What the user reads, and the code the command ends with.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) text: String,
}

impl Failure {
    /// The command line or an input file is wrong.
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, text: text.into() }
    }

    /// It could be done, and must not be.
    pub(crate) fn refused(text: impl Into<String>) -> Self {
        Self { exit: Exit::Absent, text: text.into() }
    }

    /// Something that should work did not.
    pub(crate) fn fault(text: impl Into<String>) -> Self {
        Self { exit: Exit::Fault, text: text.into() }
    }

    /// A file that cannot be used.
    pub(crate) fn file(path: &Path, why: impl Display) -> Self {
        Self::usage(format!("{}: {why}", path.display()))
    }
}

impl From<kiln::Error> for Failure {
    fn from(error: kiln::Error) -> Self {
        Self { exit: Exit::from(&error), text: format!("{error:#}") }
    }
}
