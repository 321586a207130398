//! Names and lines as the numbers that the records of streams hold.

use std::panic::Location;

use super::address_table::{Address, AddressTable};
use crate::record::TraceLine;

static NAMES: AddressTable<&'static str> = AddressTable::new();
static LINES: AddressTable<&'static Location<'static>> = AddressTable::new();

/// A name by its number, for records that are made often.
///
/// ```
/// use kiln_trace::{KnownName, interned_name};
///
/// let (saxpy, again) = (KnownName::of("saxpy"), KnownName::of(interned_name("saxpy")));
/// assert_eq!((saxpy.text(), again.text()), ("saxpy", "saxpy"));
/// assert_eq!(KnownName::default().text(), "");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct KnownName(u32);

impl KnownName {
    /// The number of a name. It is found by where the name stands: the same text at two places has two numbers.
    #[inline]
    pub fn of(name: &'static str) -> Self {
        if name.is_empty() {
            return Self::default();
        }
        Self(NAMES.number(Address { start: name.as_ptr().addr(), length: name.len() }, name))
    }

    /// The name; empty for none.
    pub fn text(self) -> &'static str {
        NAMES.get(self.0).unwrap_or_default()
    }

    #[inline]
    pub(super) fn number(self) -> u32 {
        self.0
    }

    pub(super) fn numbered(number: u32) -> Self {
        Self(number)
    }
}

/// A line of the program by its number, for records that are made often.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct KnownLine(u32);

impl KnownLine {
    /// The number of a line.
    #[inline]
    pub fn of(line: &'static Location<'static>) -> Self {
        Self(LINES.number(Address { start: std::ptr::from_ref(line).addr(), length: 0 }, line))
    }

    /// The line; none if there is none.
    pub fn line(self) -> Option<TraceLine<'static>> {
        LINES.get(self.0).map(|line| TraceLine { file: line.file(), line: line.line() })
    }

    #[inline]
    pub(super) fn number(self) -> u32 {
        self.0
    }

    pub(super) fn numbered(number: u32) -> Self {
        Self(number)
    }
}
