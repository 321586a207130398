//! Emission of PTX.
//!
//! Each value and variable gets a register, and each operation one or a few instructions, in program order; `ptxas`
//! optimises them. There is one file for each family of instructions.

mod adjacent_accesses;
mod atomic;
mod barrier;
mod bounds_check_elimination;
mod control_flow;
mod convert;
mod division;
mod emit;
mod float;
mod half;
mod integer;
mod line_info;
mod memory;
mod operation_dispatch;
mod parameter_layout;
mod prologue;
mod register;
mod target;
mod tensor_core;
mod tile;
mod tile_product;
mod value_numbering;
mod vector_access;
mod warp;
mod writer;

pub use emit::Emitted;
pub use parameter_layout::{EntryParameter, EntryParameterKind, ParameterLayout, STATUS_BYTES, TrapStatus};
pub use target::PtxTarget;
