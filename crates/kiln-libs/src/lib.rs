//! Library operations on kiln's devices.
//!
//! A library operation is a launch: it takes part in the order of streams, can be recorded into a graph, is done again
//! after a takeover, and is checked on the simulated device. This crate has:
//!
//! - [`blas`]: matrix products with epilogues, operations on vectors, triangular systems; cuBLASLt and cuBLAS on a GPU.
//! - [`fft`]: Fourier transforms of one to three dimensions; cuFFT on a GPU.
//! - [`solve`]: Cholesky, LU, QR, least squares, symmetric eigenvalues, singular values; cuSOLVER on a GPU. Of batches (kernels of this crate) Cholesky, LU, QR, least squares, eigenvalues and singular values.
//! - [`sparse`]: products with sparse matrices (cuSPARSE on a GPU, or kernels of this crate), triangular systems and conversions (kernels of this crate).
//! - [`dnn`]: convolutions, attention (cuDNN on a GPU), softmax, normalisation and pooling (kernels of this crate), with gradients.
//! - [`elementwise`]: functions, sums and products of elements, and conversions between types, the same bits on every device.
//! - [`rand`]: random numbers by Philox4x32-10, the same on every device, bit for bit those of cuRAND where cuRAND has them.
//! - [`prims`]: reductions, scans, sorts and what is built of them.
//!
//! ```
//! use kiln::DeviceRuntime;
//! use kiln_libs::blas::{Activation, Blas, Matrix};
//!
//! let gpu = DeviceRuntime::simulated(1)?;
//! let blas = Blas::new(&gpu);
//! let a = gpu.upload(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0])?; // 2 x 3, row after row
//! let b = gpu.upload(&[1.0_f32, 0.0, 0.0, 1.0, 1.0, -9.0])?; // 3 x 2
//! let c = gpu.allocate::<f32>(4)?;
//! let product = blas.matmul(Matrix::new(&a, 2, 3), Matrix::new(&b, 3, 2), Matrix::new(&c, 2, 2));
//! product.activation(Activation::Relu).submit()?;
//! assert_eq!(c.download()?, [4.0, 0.0, 10.0, 0.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How operations of [`blas`], [`fft`], [`solve`], [`sparse`] and cuDNN run
//!
//! Each call becomes a [`LibraryCall`]: the text of one operation with its buffers. It is checked before anything is queued. The operation is
//! loaded once for each device and kept: on a GPU that opens NVIDIA's library and chooses the algorithm, on the simulated device it is computed
//! on the CPU, the same bytes on every machine. How far the two may differ is [`Tolerance::of`] the operation. Workspace comes from the heap, on the
//! stream of the call, under the tag `library`.

#![deny(unsafe_op_in_unsafe_fn)]

pub mod blas;
mod call_arguments;
mod call_state;
mod called;
mod described;
pub mod dnn;
pub mod elementwise;
mod error;
pub mod fft;
mod kept_workspace;
mod kernel_operation;
mod library_call;
mod library_tag;
mod loaded_operation;
mod loaded_operations;
mod needed_capability;
mod operand_fit;
mod operands;
mod operation_hasher;
mod operation_table;
pub mod prims;
mod program_kernel;
pub mod rand;
mod scalar_argument;
mod scaling;
pub mod solve;
mod solve_failure;
pub mod sparse;
mod tolerance;

pub use error::LibraryError;
pub use kernel_operation::KernelOperation;
pub use kiln_operation as operation;
pub use library_call::LibraryCall;
pub use tolerance::{BoundedError, Tolerance};

/// The result of a library operation.
pub type Result<T> = std::result::Result<T, LibraryError>;
