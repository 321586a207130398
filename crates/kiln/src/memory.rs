//! Memory stacks, budgets, tags and the heap: everything of `kiln-mem`, and how a runtime is told which stack to build.

pub use kiln_mem::*;
pub use kiln_runtime::{Drained, MemoryConfig};
