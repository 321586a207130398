//! How a command ends when it does not succeed: a sentence for the person who typed it.

use std::fmt;

/// What a command answers.
pub(crate) type Result<T = ()> = std::result::Result<T, Failure>;

/// Why a command did not do what was asked, and what to do next.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    /// A failure in words.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// A failure that was already told in full; nothing more is printed.
    pub(crate) fn told() -> Self {
        Self(String::new())
    }

    /// The failure of something done to a file.
    pub(crate) fn file(doing: &str, path: &std::path::Path, error: &std::io::Error) -> Self {
        Self(format!("cannot {doing} {}: {error}", path.display()))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { writeln!(f, "error: {}", self.0) }
    }
}
