//! Memories: what a kernel reads and writes.
//!
//! Global memory belongs to the caller and is reached through [`GlobalMemory`]. Shared, local and parameter memory
//! belong to the executor.

mod atomic_words;
mod device_heap;
pub(crate) mod generic_address;
mod global;
mod local;
mod shared;
mod shared_map;
mod span_cache;
mod test_memory;

pub use atomic_words::Words;
pub use device_heap::DeviceHeap;
pub use global::{Cells, Declared, GlobalMemory, Miss, MissKind, Span, UndefinedStore};
pub(crate) use local::Local;
pub(crate) use shared::Shared;
pub(crate) use shared_map::SharedMap;
pub(crate) use span_cache::SpanCache;
pub use test_memory::SimpleMemory;
