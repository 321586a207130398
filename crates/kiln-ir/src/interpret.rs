//! The interpreter, which defines what programs compute.
//!
//! A block runs its threads one after the other, each until it must wait for others or is done. The order is ascending
//! or descending: a program whose result depends on it has a race, and running both ways shows it.

mod block;
mod bytecode;
mod launch;
mod memory;
mod outcome;
mod thread;
mod tile;
mod warp;

pub use launch::{Interpreter, ThreadOrder};
pub use outcome::{InterpretError, InterpretOutcome, OutOfRange};
