//! What travels between the two processes, byte by byte.
//!
//! The format is our own and explicit: little-endian numbers, lengths in front of what they measure, a tag in front of
//! each alternative. Decoding trusts nothing: a length is held against what is left before anything is
//! allocated, a tag nobody knows is an error, and so are bytes that are left over. [`VERSION`] is told in the first
//! message and is raised with every change.

mod command;
mod device;
mod error;
#[cfg(test)]
mod fuzzed;
mod greeting;
mod interned;
mod reader;
mod request;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod samples;
mod writer;

pub(crate) use command::{WireCommand, WireLaunch, WirePlace};
pub(crate) use error::{put_error, take_error};
pub(crate) use greeting::{Farewell, Hello, Welcome};
pub(crate) use reader::{Malformed, Reader};
pub(crate) use request::{Ask, Request, WireNode, WireObject};
pub(crate) use writer::{Put, Take, Writer};

/// The version of the format.
pub(crate) const VERSION: u32 = 2;
