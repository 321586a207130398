//! From source to kernels, compiled once.
//!
//! ```text
//!   source, headers, options, architecture, compiler and driver version ─► key
//!      in memory: a module loaded under that key and still used? ─► its kernels
//!      on disk:   cubin and PTX under that key?                  ─► load
//!      else:      NVRTC, once however many threads ask           ─► keep on disk, load
//!   PTX ─► signature and effects of each kernel, checked at every launch
//! ```

mod builder;
mod compiler_file;
mod counters;
mod includes;
mod modules;
mod payload;
mod reading;
mod runtime;
mod source;

pub use builder::ModuleBuilder;
pub use counters::CodeCounters;
pub use source::Source;

pub(crate) use modules::Modules;
