//! CUDA kernels with inputs and host oracles, for every device kiln runs on.
//!
//! A kernel that gives the right answer on a simulated device and on a GPU is worth more than one that was only ever
//! tried on either. This crate holds a table of such kernels that knows nothing of devices: a caller with a device runs the
//! [`cases`] on it. Development only, never published.
//!
//! # How a case is run
//!
//! ```text
//! case.arguments(seed) ── put each buffer into device memory, pack values and addresses ── launch case.entry
//!        │                                                                                      │
//!        └── case.expected(&arguments)  ◀──────────── Arguments::compare ────────────  read the buffers back
//! ```
//!
//! - The source of a kernel is CUDA C; its first line tells the options it was compiled with. The PTX beside it came out
//!   of NVRTC 13.0 with those options, so that running the table needs no compiler.
//! - The oracle is plain Rust that does what the kernel does. Integers and IEEE operations must be equal bit for bit;
//!   where the hardware approximates, the buffer says how close its values must be.
//! - Inputs are made from a seed. Results do not depend on the order of threads.
//!
//! Beside the kernels stand [`probes`]: single instructions in every form, with what an H200 answered to each; and [`matrix_probes`], the same for
//! the tensor cores, an instruction of a whole warp each.
//!
//! Types in reading order: [`Case`], [`CaseArguments`], [`CaseArgument`], [`CaseBuffer`], [`Compare`], [`CaseSource`], [`Probe`], [`MatrixProbe`].

#![forbid(unsafe_code)]

mod argument;
mod buffer;
mod case;
mod cases;
mod instruction_probe;
mod instruction_probes;
mod launch_arguments;
mod mma_operands;
mod mma_probe;
mod mma_probe_table;
mod seeded_inputs;
mod source;
mod tensor_probe;
mod tensor_probe_table;

pub use argument::CaseArgument;
pub use buffer::{CaseBuffer, Compare, Data};
pub use case::{Case, CaseShape, Ending};
pub use cases::cases;
pub use instruction_probe::{Class, Meaning, Probe, probe_module};
pub use instruction_probes::{deviations, probes, record, recorded};
pub use launch_arguments::CaseArguments;
pub use mma_operands::{Spread as MatrixSpread, number as matrix_number};
pub use mma_probe::{Fragment, MatrixProbe, MatrixProbeKind};
pub use mma_probe_table::{matrix_probes, record_matrices, recorded_matrices};
pub use seeded_inputs::Random;
pub use source::CaseSource;
pub use tensor_probe::TensorProbe;
pub use tensor_probe_table::{record_tensors, recorded_tensors, sparse_float8_probes, tensor_probes};
