//! Library operations on kiln's devices.
//!
//! A library operation is a launch: it takes part in the order of streams, can be recorded into a graph, is done again
//! after a takeover, and is checked on the simulated device. This crate has:
//!
//! - [`rand`]: random numbers by Philox4x32-10, the same on every device, bit for bit those of cuRAND where cuRAND has them.
//!
//! ```
//! use kiln::DeviceRuntime;
//! use kiln_libs::rand::{Normal, Sampler, Uniform};
//!
//! let gpu = DeviceRuntime::simulated(1)?;
//! let random = Sampler::new(&gpu);
//! let values = gpu.allocate::<f32>(1000)?;
//! random.draw(42).fill(&values, Uniform)?;
//! assert!(values.download()?.iter().all(|value| (0.0..=1.0).contains(value)));
//!
//! // The next thousand of the same sequence, as normal numbers.
//! random.draw(42).offset(1000).fill(&values, Normal { mean: 0.0, deviation: 2.0 })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![deny(unsafe_op_in_unsafe_fn)]

mod error;
pub mod rand;

pub use error::LibraryError;

/// The result of a library operation.
pub type Result<T> = std::result::Result<T, LibraryError>;
