//! A CUDA device runtime for Rust that also runs with no GPU.

mod error;
mod runtime;

pub use error::{Error, ErrorKind, Result};
pub use runtime::{DeviceRuntime, RuntimeConfig};
