//! Sparse matrices: products with vectors, dense and sparse matrices, triangular systems of equations, conversions.
//!
//! | call | computes | on a GPU | equal bits in each run |
//! |---|---|---|---|
//! | [`Sparse::spmv`] | `y = alpha A x + beta y` | cuSPARSE: SpMV | with [`Determinism::RunToRun`], unless rows are transposed |
//! | [`Sparse::spmm`] | `C = alpha A B + beta C`, `B` dense | SpMM | with [`Determinism::RunToRun`], unless rows are transposed |
//! | [`Sparse::product_structure`], [`Sparse::spgemm`] | `C = alpha A B + beta C`, all sparse | kernels of this crate | yes |
//! | [`Sparse::triangular_solve`] | the `X` with `A X = alpha B` | a kernel of this crate | yes |
//! | [`Sparse::convert`], [`Sparse::sort_coordinates`] | another format, or the transpose; coordinates in order | kernels of this crate | yes |
//! | [`Sparse::count_nonzeros`], [`Sparse::copy_nonzeros`] | a sparse matrix of a dense one | kernels of this crate | yes |
//! | [`Sparse::to_dense`] | all elements, zeros included | SparseToDense | yes |
//!
//! Elements are `f32` or `f64`, indices `i32` or `i64`, counted from 0. Formats are compressed rows ([`CsrMatrix`]), compressed columns ([`CscMatrix`]) and
//! coordinates ([`CooMatrix`]); a [`SparseView`] is one of them or its transpose.
//!
//! With an `alpha` of 0 the operands that it multiplies are not read, as in [`blas`](crate::blas): `spmv`, `spmm` and `spgemm` give `beta y` or `beta C`, and the solution of a
//! triangular system is 0.
//!
//! # Indices
//!
//! `upload`, `from_dense` and `from_triplets` of each format check every index before anything is uploaded. Of `from_buffers` the host knows the lengths
//! alone. In calls of cuSPARSE, the simulated device finds an offset, a row or a column that is out of range, and coordinates that are not
//! sorted by rows. The kernels of this crate access nothing outside of the buffers, whatever the indices are, and their results have no meaning then.
//! [`Sparse::check_indices`] looks at all indices on the device, and says which one is wrong.
//!
//! # Sizes that are known on the device alone
//!
//! Nothing is read back behind the program's back: [`Sparse::count_nonzeros`] leaves the number of elements in device memory, for the program to read, and
//! [`Sparse::product_structure`] waits, as its page says. All other calls are queued, and can be recorded into a graph.
//!
//! Types in reading order: [`Sparse`], [`CsrMatrix`], [`CscMatrix`], [`CooMatrix`], [`SparseView`], [`SparseIndex`], [`TriangularCall`].

mod conversion;
mod coo;
mod csc;
mod csr;
mod device_index_check;
#[doc(hidden)]
pub mod embedded_ptx;
mod from_dense;
mod handle;
mod host_index_check;
mod index;
mod product;
mod triangular;
mod view;

pub use crate::blas::{Matrix, Real};
pub use crate::solve_failure::SolveFailure;
pub use conversion::{Conversion, SortCoordinates};
pub use coo::CooMatrix;
pub use csc::CscMatrix;
pub use csr::CsrMatrix;
pub use from_dense::{CopyNonzeros, CountNonzeros};
pub use handle::Sparse;
pub use index::SparseIndex;
pub use kiln_operation::{Determinism, Diagonal, Triangle};
pub use product::SparseProduct;
pub use triangular::{TriangularCall, TriangularInfo, TriangularTicket};
pub use view::SparseView;
