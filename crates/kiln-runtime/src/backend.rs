//! One backend of many: what it is given, and what it usually builds upon that.
//!
//! A program has several parts that each want the GPU, a solver and a sampler, say. Each is a backend: it is probed
//! under its own label, so that every error says who asked, and it gets [`BackendParts`]: the runtime, which is the
//! same for all backends on a device, and a separate stream. Most then want a [`BackendContext`], which adds modules
//! and buffers that are used again, and keep it in a [`CachedBackend`].

mod arena;
mod cached;
mod code;
mod context;
mod modules;
mod parts;
mod process;

pub use arena::{Arena, ArenaBuffer, ArenaConfig, ArenaUsage};
pub use cached::CachedBackend;
pub use code::CodeImage;
pub use context::BackendContext;
pub use parts::BackendParts;
pub use process::{probe_backend, probe_backend_with_compile};
