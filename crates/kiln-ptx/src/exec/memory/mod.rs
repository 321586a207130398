//! Memories: what a kernel reads and writes.
//!
//! Global memory belongs to the caller and is reached through [`Memory`]. Shared, local and parameter memory
//! belong to the executor.

mod global;
mod heap;
mod local;
mod shared;
mod shared_map;
mod simple;
mod span_cache;
pub(crate) mod window;
mod words;

pub use global::{Cells, Declared, GlobalMemory, Miss, MissKind, Span, UndefinedStore};
pub use heap::DeviceHeap;
pub(crate) use local::Local;
pub(crate) use shared::Shared;
pub(crate) use shared_map::SharedMap;
pub use simple::SimpleMemory;
pub(crate) use span_cache::SpanCache;
pub use words::Words;
