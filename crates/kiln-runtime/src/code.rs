//! From source to kernels, compiled once.
//!
//! ```text
//!   CUDA C: source, headers, options, compiler, device and driver version ─► key
//!   PTX:    text, device and driver version                               ─► key
//!      in memory: a module loaded under that key and still used? ─► its kernels
//!      on disk:   machine code under that key?                   ─► load
//!      else:      NVRTC, or the driver's own compiler for PTX, once for all threads that ask ─► keep on disk, load
//!   PTX ─► signature and effects of each kernel, checked at every launch
//! ```

pub(crate) mod builder;
mod cached_code;
mod code_caches;
mod counters;
mod includes;
pub(crate) mod library_file;
mod module_cache;
mod ptx_signature;
mod source;

pub use builder::ModuleBuilder;
pub use counters::CodeCounters;
pub use source::Source;

pub(crate) use module_cache::Modules;
