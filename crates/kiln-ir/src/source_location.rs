//! The source location of a statement.

use std::fmt;
use std::panic::Location;

/// The source location of a statement: in a text, or in the Rust code that built it.
///
/// Locations are for messages only. They compare equal, so programs that differ in them are equal.
#[derive(Clone, Copy, Debug, Default)]
pub enum SourceLocation {
    /// No location is known.
    #[default]
    Unknown,
    /// In a `.kir` text; both count from 1.
    Text {
        /// The line.
        line: u32,
        /// The column, in characters.
        column: u32,
    },
    /// In Rust code.
    Rust(&'static Location<'static>),
}

impl SourceLocation {
    /// The code that calls the caller of this.
    #[track_caller]
    pub fn here() -> Self {
        Self::Rust(Location::caller())
    }
}

impl PartialEq for SourceLocation {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for SourceLocation {}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("an unknown location"),
            Self::Text { line, column } => write!(f, "{line}:{column}"),
            Self::Rust(at) => write!(f, "{at}"),
        }
    }
}
