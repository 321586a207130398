//! One launch of a kernel or a program from a file, for `kiln run` and `kiln check`.
//!
//! ```text
//! flags ─► plan: files read, every argument compared with signature and effects, or declarations ─► attempt on a device ─► outcome
//!                      │ does not fit: refused, nothing runs                                    │ fault, findings, text, arrays
//! ```

mod argument_check;
mod array_addresses;
mod constants;
mod device_launch;
mod element_check;
mod finding;
mod finding_prefix;
mod flags;
mod host_memory;
mod loaded_arguments;
mod program_arguments;
mod program_trap;
mod result_finding;
mod struct_padding;
mod truncated_output;
mod undefined_elements;

pub(crate) use constants::ConstantSheet;
pub(crate) use device_launch::{Attempt, Outcome, ResultArray};
pub(crate) use finding::KernelFinding;
pub(crate) use flags::LaunchFlags;
pub(crate) use host_memory::check_memory;
pub(crate) use loaded_arguments::{ArgumentSheet, Plan};
pub(crate) use program_arguments::{count_out_of_range, role_word};
pub(crate) use truncated_output::LeftOut;
