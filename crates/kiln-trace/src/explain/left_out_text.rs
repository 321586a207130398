//! What is not among the first few, in words.

use std::fmt::{self, Formatter};

use super::explanation::LeftOut;
use super::quantity::Time;

impl LeftOut {
    /// A line about it, if there is anything: how many, of what, and how long.
    pub(super) fn tell(
        &self,
        f: &mut Formatter<'_>,
        indent: &str,
        (one, several): (&str, &str),
    ) -> fmt::Result {
        match *self {
            Self { count: 0, .. } => Ok(()),
            Self { count: 1, ns } => writeln!(f, "{indent}and 1 more {one}: {}", Time(ns)),
            Self { count, ns } => writeln!(f, "{indent}and {count} more {several}, together {}", Time(ns)),
        }
    }
}
