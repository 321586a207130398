//! Kernels built in Rust.
//!
//! Every call adds a statement at once, so a load happens where it is written, not where its value is used. Operands
//! are typed in Rust, so types that do not match do not compile.

mod element;
mod flow;
mod kernel;
mod memory;
mod operators;
mod val;
mod var;

pub use element::{Bf16, F16, IntoOperand, KernelElement, KernelFloat, KernelInteger, KernelNumber};
pub use kernel::KernelBuilder;
pub use memory::Mem;
pub use val::Val;
pub use var::Var;
