//! How kernels are compiled: sources, options, errors and counters.

pub use kiln_driver::Image;
pub use kiln_runtime::{CodeCounters, CodeError, ModuleBuilder, Source};
