//! Emission of PTX.
//!
//! Each value and variable gets a register, and each operation one or a few instructions, in program order; `ptxas`
//! optimises them. There is one file for each family of instructions.

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
