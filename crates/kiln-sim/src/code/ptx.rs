//! PTX on the simulated device: the executor of kiln-ptx behind the trait for code.

mod engine;
mod executor_memory;
mod kernel;
mod kernel_log;
mod segment_bytes;

pub use engine::PtxEngine;
pub use kernel_log::KernelLog;
