//! Operations of mathematical libraries and collectives of communicators, as data.
//!
//! An [`Operation`] says everything about one library call but its buffers and its scalars: which operation it is, the sizes, element types,
//! leading dimensions, precision and epilogue. Its text is what `kiln_driver::Image::Library` carries; a driver parses it, prepares the
//! operation once, and runs it at each launch. kiln-cuda calls NVIDIA's libraries, kiln-sim computes on the CPU.
//!
//! ```
//! use kiln_operation::{OperandEffect, Operation};
//!
//! let text = "blas.axpy element=f32 n=1000 x_step=1 y_step=1";
//! let operation: Operation = text.parse()?;
//! assert_eq!(operation.to_string(), text);
//! assert_eq!(operation.name(), "blas.axpy");
//! let [x, y, alpha] = &operation.operands()[..] else { panic!() };
//! assert_eq!((x.effect, y.effect, alpha.effect), (OperandEffect::Reads, OperandEffect::ReadsAndWrites, OperandEffect::Scalar));
//! assert_eq!(y.bytes, 4000);
//! # Ok::<(), kiln_operation::OperationError>(())
//! ```
//!
//! # What holds
//!
//! - The text of an operation is canonical: parsing it and printing it again gives the same text, so that a cache can use it as a key.
//! - An operation that was parsed, or that passed [`Operation::check`], has sizes that fit 63 bits, leading dimensions that hold its
//!   rows, and outputs that do not overlap themselves.
//! - Each argument of a launch takes eight bytes, in the order of [`Operation::operands`]: an address, or a scalar as `f64`. A driver that
//!   needs workspace takes its address behind them.
//! - Matrices are stored by columns, as BLAS has them.
//!
//! Types in reading order: [`Operation`], [`OperationOperand`], [`ElementType`], [`Matmul`], [`FftOperation`], [`OperationError`].
//!
//! # What it does not do
//!
//! It computes nothing and knows no device.

#![forbid(unsafe_code)]

mod attention;
mod collective;
mod collective_group;
mod collective_type;
mod communicator;
mod convolution;
mod eigenvalues;
mod element_type;
mod error;
mod extent;
mod factor;
mod fft;
mod field;
mod level1;
mod level2;
mod level3;
mod matmul;
mod operand;
mod operation;
mod sparse;

pub use attention::{Attention, AttentionLayout, AttentionMask};
pub use collective::{Collective, CollectiveKind, CollectiveOperand, CollectiveStep, Reduction};
pub use collective_group::{CollectiveGroup, MAX_GROUP};
pub use collective_type::{CollectiveElement, CollectiveType};
pub use communicator::{ABORT, BRING, CommunicatorId, CommunicatorRank, DEPARTURE, FAILURE, FOLD, MAX_RANKS};
pub use convolution::{Convolution, ConvolutionPass, Spatial, TensorLayout};
pub use eigenvalues::{Gesvd, Syevd};
pub use element_type::ElementType;
pub use error::OperationError;
pub use factor::{Geqrf, Getrf, Getrs, Orgqr, Ormqr, Potrf, Potrs};
pub use fft::{FftKind, FftOperation, FftShape};
pub use level1::{Asum, Axpy, Dot, Iamax, Nrm2, Scal, Swap, VectorCopy};
pub use level2::{Gemv, Ger};
pub use level3::{Diagonal, Geam, Side, Symm, Syrk, Triangle, Trmm, Trsm};
pub use matmul::{Activation, Determinism, Epilogue, Layout, Math, Matmul};
pub use operand::{ARGUMENT_BYTES, OperandEffect, OperationOperand};
pub use operation::Operation;
pub use sparse::{DenseLayout, IndexType, SparseFormat, SparseToDense, Spmm, Spmv};
