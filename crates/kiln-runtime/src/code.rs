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

mod code_caches;
mod code_counters;
mod disk_entry;
mod included_headers;
mod kernel_source;
pub(crate) mod library_fingerprint;
mod loaded_modules;
pub(crate) mod module_builder;
mod ptx_signature;

pub use code_counters::CodeCounters;
pub use kernel_source::Source;
pub use module_builder::ModuleBuilder;

pub(crate) use loaded_modules::Modules;
