//! Products with sparse matrices in the compressed row format (CSR).
//!
//! | call | computes | on a GPU | equal bits in each run |
//! |---|---|---|---|
//! | [`Sparse::spmv`] | `y = alpha A x + beta y` | cuSPARSE: SpMV | with [`Determinism::RunToRun`], unless `A` is transposed |
//! | [`Sparse::spmm`] | `C = alpha A B + beta C` | SpMM | with [`Determinism::RunToRun`], unless `A` is transposed |
//! | [`Sparse::to_dense`] | all elements, zeros included | SparseToDense | yes |
//!
//! Elements are `f32` or `f64`, indices `i32` or `i64`, counted from 0. A matrix in the compressed column format (CSC) is [`CsrMatrix::transposed`] of
//! one whose rows are its columns.
//!
//! [`CsrMatrix::upload`], [`CsrMatrix::from_dense`] and [`CsrMatrix::from_triplets`] check every index before anything is uploaded. Of
//! [`CsrMatrix::from_buffers`] the host knows the lengths alone; the simulated device finds an offset or a column that is out of range.
//!
//! Types in reading order: [`Sparse`], [`CsrMatrix`], [`CsrView`], [`SparseIndex`].

mod csr;
mod handle;
mod index;

pub use crate::blas::{Matrix, Real};
pub use csr::{CsrMatrix, CsrView};
pub use handle::Sparse;
pub use index::SparseIndex;
pub use kiln_operation::Determinism;
