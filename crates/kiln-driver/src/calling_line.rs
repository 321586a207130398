//! The line of the program that a thread submits work for.
//!
//! Commands do not carry it, since a GPU has no use for it. A driver in the same process that checks the program may ask for it while it is given a command.

use std::cell::Cell;
use std::panic::Location;

thread_local! {
    static CURRENT: Cell<Option<&'static Location<'static>>> = const { Cell::new(None) };
}

/// What this thread submits is for a line of the program until this is dropped.
///
/// ```
/// use std::panic::Location;
///
/// use kiln_driver::CallingLine;
///
/// let here = Location::caller();
/// let line = CallingLine::enter(here);
/// assert_eq!(CallingLine::current(), Some(here));
/// drop(line);
/// assert_eq!(CallingLine::current(), None);
/// ```
#[derive(Debug)]
#[must_use = "the line counts until this is dropped"]
pub struct CallingLine {
    before: Option<&'static Location<'static>>,
}

impl CallingLine {
    /// From here on, also within work for another line.
    pub fn enter(line: &'static Location<'static>) -> Self {
        Self { before: CURRENT.replace(Some(line)) }
    }

    /// The line that this thread submits work for, if it is known.
    pub fn current() -> Option<&'static Location<'static>> {
        CURRENT.get()
    }
}

impl Drop for CallingLine {
    fn drop(&mut self) {
        CURRENT.set(self.before);
    }
}
