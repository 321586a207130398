//! PTX on the simulated device: the executor of kiln-ptx behind the seam for code.

mod cells;
mod engine;
mod kernel;
mod kernel_log;
mod space;

pub use engine::PtxEngine;
pub use kernel_log::KernelLog;
