//! The kinds of [`Error`](crate::Error).

pub use kiln_driver::Code;
pub use kiln_runtime::{ErrorKind, Misuse, OutOfHostMemory, RecordingError};
