//! What a library needs to use a device beside other libraries: runtime, streams, buffers and modules.
//!
//! A program has several parts that each want the GPU, a solver and a sampler, say. Each is a backend: it is probed
//! under its own label, so that every error names the part that asked, and it gets [`BackendParts`]: the runtime, which is
//! the same for all backends on a device, and the stream to use by default. Most then want a [`BackendContext`], which adds
//! modules and reusable buffers, and keep it in a [`CachedBackend`].

mod arena;
mod backend_parts;
mod cached;
mod code;
mod context;
mod modules;
mod options;
mod process_backend;

pub use arena::{Arena, ArenaBuffer, ArenaConfig, ArenaUsage};
pub use backend_parts::BackendParts;
pub use cached::CachedBackend;
pub use code::CodeImage;
pub use context::BackendContext;
pub use options::BackendOptions;
pub use process_backend::{probe_backend, probe_backend_on, probe_backend_with_compile};
