//! One launch of a kernel or a program from a file, for `kiln run` and `kiln check`.
//!
//! ```text
//! flags ─► plan: files read, every argument held against signature and effects, or declarations ─► attempt on a device ─► result
//!                      │ does not fit: refused, nothing is opened                              │ fault, findings, text, arrays
//! ```

mod attempt;
mod finding;
mod flags;
mod map;
mod plan;
mod program;

pub(crate) use attempt::{Attempt, Outcome};
pub(crate) use finding::KernelFinding;
pub(crate) use flags::LaunchFlags;
pub(crate) use plan::{ArgumentSheet, Plan};
pub(crate) use program::role_word;
