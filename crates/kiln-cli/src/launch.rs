//! One launch of a kernel or a program from a file, for `kiln run` and `kiln check`.
//!
//! ```text
//! flags ─► plan: files read, every argument compared with signature and effects, or declarations ─► attempt on a device ─► outcome
//!                      │ does not fit: refused, nothing runs                                    │ fault, findings, text, arrays
//! ```

mod attempt;
mod elements;
mod finding;
mod fit;
mod flags;
mod left_out;
mod map;
mod plan;
mod program;

pub(crate) use attempt::{Attempt, Outcome, ResultArray};
pub(crate) use finding::KernelFinding;
pub(crate) use flags::LaunchFlags;
pub(crate) use left_out::LeftOut;
pub(crate) use map::ArrayMap;
pub(crate) use plan::{ArgumentSheet, Plan};
pub(crate) use program::{count_out_of_range, role_word};
