//! Dense linear algebra: matrix products with epilogues, operations on vectors, triangular systems.
//!
//! Matrices are stored row after row, as arrays in Rust and C are; [`Matrix::transposed`] is a matrix that is stored column after column.
//!
//! | call | computes | elements | on a GPU |
//! |---|---|---|---|
//! | [`Blas::matmul`] | `C = activation(alpha A B + beta C + bias)`, also batched | `f64`; `f32`; `f16` into `f16` or `f32`; `bf16` into `bf16` or `f32`; `i8` into `i32`; `f8e4m3` into `f16`, `bf16` or `f32` | cuBLASLt |
//! | [`Blas::gemv`] | `y = alpha A x + beta y` | `f32`, `f64` | cuBLAS |
//! | [`Blas::ger`] | `A = alpha x yᵀ + A` | `f32`, `f64` | cuBLAS |
//! | [`Blas::dot`] | `result = x · y` | `f32`, `f64` | cuBLAS |
//! | [`Blas::nrm2`] | `result = ‖x‖₂` | `f32`, `f64` | cuBLAS |
//! | [`Blas::axpy`] | `y = alpha x + y` | `f32`, `f64` | cuBLAS |
//! | [`Blas::scal`] | `x = alpha x` | `f32`, `f64` | cuBLAS |
//! | [`Blas::copy`], [`Blas::swap`] | `y = x`; `x` and `y` exchange their elements | `f32`, `f64` | cuBLAS |
//! | [`Blas::asum`] | `result = Σ \|x\|` | `f32`, `f64` | cuBLAS |
//! | [`Blas::iamax`] | the place of the largest `\|x\|`, counted from 1 | `f32`, `f64` | cuBLAS |
//! | [`Blas::syrk`] | one triangle of `C = alpha A Aᵀ + beta C` | `f32`, `f64` | cuBLAS |
//! | [`Blas::symm`] | `C = alpha A B + beta C` or `C = alpha B A + beta C`, `A` symmetric | `f32`, `f64` | cuBLAS |
//! | [`Blas::trmm`] | `C = alpha A B` or `C = alpha B A`, `A` triangular | `f32`, `f64` | cuBLAS |
//! | [`Blas::geam`], [`Blas::transpose`] | `C = alpha A + beta B`; `C = Aᵀ` | `f32`, `f64` | cuBLAS |
//! | [`Blas::trsm`] | `X` of `A X = alpha B` or `X A = alpha B`, `A` triangular | `f32`, `f64` | cuBLAS |
//!
//! With an `alpha` of 0 the operands that it multiplies are not read: a NaN or an infinity in them does not reach the result. They must still fit. [`Blas::scal`]
//! has no other operand and multiplies always, so that NaN stays.
//!
//! Types in reading order: [`Blas`], [`Matrix`], [`Vector`], [`MatmulCall`], [`PreparedMatmul`], [`MatmulTuning`], [`MatrixElement`].

mod element;
mod handle;
mod matmul;
mod matrix;
mod matrix_operations;
mod prepared_matmul;
mod product_launch;
mod triangular;
mod tuning;
mod vector;
mod vector_operations;
mod zero_product;

pub use element::{F8E4M3, MatrixElement, Real};
pub use handle::Blas;
pub(crate) use handle::{check_single, without_terms};
pub use kiln_operation::{Activation, Determinism, Diagonal, Math, Side, Triangle};
pub use matmul::MatmulCall;
pub use matrix::Matrix;
pub use prepared_matmul::PreparedMatmul;
pub(crate) use triangular::stored_triangle;
pub use tuning::MatmulTuning;
pub use vector::Vector;
