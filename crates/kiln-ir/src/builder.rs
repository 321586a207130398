//! Kernels built in Rust.
//!
//! Every call adds a statement at once, so a load happens where it is written, not where its value is used. Operands
//! are typed in Rust, so types that do not match do not compile.

mod control_flow;
mod element;
mod kernel;
mod memory;
mod operators;
mod tile;
mod value;
mod variable;

pub use element::{
    Bf16, F16, IntoOperand, KernelElement, KernelFactor, KernelFloat, KernelInteger, KernelNumber,
};
pub use kernel::KernelBuilder;
pub use memory::Mem;
pub use tile::{MatrixRef, TileVar};
pub use value::Val;
pub use variable::Var;
