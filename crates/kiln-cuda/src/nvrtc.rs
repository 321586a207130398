//! CUDA C compiled while the program runs.
//!
//! NVRTC is a separate library, found as [`SearchEnvironment`](crate::SearchEnvironment) finds it; it needs no driver and no
//! device. Where it is missing every compilation says so and how to get it. Headers of the toolkit that a source
//! includes, such as `cuda_fp16.h`, are found beside it ([`ToolkitHeaders`]). Headers of C and C++, such as `stdint.h`, are part of
//! this crate ([`standard_headers`]).
//!
//! ```text
//!   CudaSource ──┐
//!                ├── Nvrtc::compile ── Compiled: PTX, cubin, lowered names, warnings
//!   CompileOptions ┘                └─ NvrtcError: diagnostics with file, line, column and text
//! ```

mod architecture;
mod compiler;
mod diagnostic;
mod error;
mod include_hint;
mod options;
mod program;
mod source;
mod standard_headers;
mod symbols;

pub use architecture::{Architecture, UnknownArchitectureName};
pub use compiler::Nvrtc;
pub use diagnostic::{Diagnostic, DiagnosticSeverity};
pub use error::{CompileFailure, NvrtcError};
pub use options::{CompileOptions, CompileTarget};
pub use program::Compiled;
pub use source::{CudaSource, Header};
pub use standard_headers::standard_headers;

pub use crate::libraries::{HeadersNotFound, ToolkitHeaders};
