//! PTX on the simulated device: the executor of kiln-ptx behind the trait for code.

mod cells;
mod engine;
mod executor_memory;
mod kernel;
mod kernel_log;

pub use engine::PtxEngine;
pub use kernel_log::KernelLog;
