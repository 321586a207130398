//! What a library needs to use a device beside other libraries: runtime, streams, buffers and modules.
//!
//! A program has several parts that each want the GPU, a solver and a sampler, say. Each is a backend: it is probed
//! under its own label, so that every error names the part that asked, and it gets [`BackendParts`]: the runtime, which is
//! the same for all backends on a device, and the stream to use by default. Most then want a [`BackendContext`], which adds
//! modules and reusable buffers, and keep it in a [`CachedBackend`].

mod backend_context;
mod backend_parts;
mod buffer_pool;
mod cached_backend;
mod code_image;
mod named_modules;
mod options;
mod process_backend;

pub use backend_context::BackendContext;
pub use backend_parts::BackendParts;
pub use buffer_pool::{Arena, ArenaBuffer, ArenaConfig, ArenaUsage};
pub use cached_backend::CachedBackend;
pub use code_image::CodeImage;
pub use options::BackendOptions;
pub use process_backend::{probe_backend, probe_backend_on, probe_backend_with_compile};
