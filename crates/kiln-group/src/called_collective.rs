//! A collective as a rank called it, with its line: what an error says of two calls that do not meet.

use std::fmt;
use std::panic::Location;

/// A collective that a rank called.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CalledCollective {
    /// The rank.
    pub rank: u32,
    /// What it called, such as `all_reduce of f32 sum of 12`.
    pub what: String,
    /// File, line and column of the call.
    pub place: String,
}

impl CalledCollective {
    pub(crate) fn new(rank: u32, what: &str, place: &Location<'_>) -> Self {
        Self { rank, what: what.to_owned(), place: place.to_string() }
    }
}

impl fmt::Display for CalledCollective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rank, what, place } = self;
        write!(f, "rank {rank} called {what} at {place}")
    }
}
