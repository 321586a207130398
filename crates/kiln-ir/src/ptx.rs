//! Programs as PTX.
//!
//! One register for each value and variable, one or a few instructions for each operation, in the order of the
//! program; `ptxas` does the rest. What a family of instructions needs is in its own file.

mod adjacent;
mod arithmetic;
mod atomic;
mod convert;
mod division;
mod emit;
mod float;
mod flow;
mod half;
mod integer;
mod layout;
mod lines;
mod meeting;
mod memory;
mod prologue;
mod proof;
mod register;
mod same;
mod target;
mod vector;
mod warp;
mod writer;

pub use emit::Emitted;
pub use layout::{Layout, Parameter, ParameterKind, STATUS_BYTES, Status};
pub use target::Target;
