//! Places in PTX text.

use std::fmt;

/// A place in PTX text: line and column, both counted from 1; the column counts bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Position {
    /// Line, from 1.
    pub line: u32,
    /// Byte within the line, from 1.
    pub column: u32,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// Where a part of a module stood in its text.
///
/// Any two origins are equal: a module printed and parsed again is the same module although its parts stand
/// elsewhere. Compare [`Origin::position`] to compare places.
#[derive(Clone, Copy, Debug, Default)]
pub struct Origin(Position);

impl Origin {
    pub(crate) fn new(position: Position) -> Self {
        Self(position)
    }

    /// The place itself.
    pub fn position(self) -> Position {
        self.0
    }
}

impl PartialEq for Origin {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Origin {}
