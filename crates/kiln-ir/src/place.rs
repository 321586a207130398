//! The source location of a statement.

use std::fmt;
use std::panic::Location;

/// The source location of a statement: in a text, or in the Rust code that built it.
///
/// Locations are for messages only. They compare equal, so programs that differ in them are equal.
#[derive(Clone, Copy, Debug, Default)]
pub enum Place {
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

impl Place {
    /// The code that calls the caller of this.
    #[track_caller]
    pub fn here() -> Self {
        Self::Rust(Location::caller())
    }
}

impl PartialEq for Place {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Place {}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("an unknown place"),
            Self::Text { line, column } => write!(f, "{line}:{column}"),
            Self::Rust(at) => write!(f, "{at}"),
        }
    }
}
