//! One launch of a kernel or a program from a file, for `kiln run` and `kiln check`.
//!
//! ```text
//! flags ─► plan: files read, every argument compared with signature and effects, or declarations ─► attempt on a device ─► outcome
//!                      │ does not fit: refused, nothing runs                                    │ fault, findings, text, arrays
//! ```

mod argument_check;
mod array_addresses;
mod attempt;
mod elements;
mod finding;
mod flags;
mod left_out;
mod loaded_arguments;
mod program;

pub(crate) use array_addresses::ArrayMap;
pub(crate) use attempt::{Attempt, Outcome, ResultArray};
pub(crate) use finding::KernelFinding;
pub(crate) use flags::LaunchFlags;
pub(crate) use left_out::LeftOut;
pub(crate) use loaded_arguments::{ArgumentSheet, Plan};
pub(crate) use program::{count_out_of_range, role_word};
