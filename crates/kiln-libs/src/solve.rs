//! Factorisations and solvers of dense matrices: Cholesky, LU, QR, least squares, symmetric eigenvalues, singular values.
//!
//! | call | computes | on a GPU |
//! |---|---|---|
//! | [`Solve::cholesky`], [`Solve::cholesky_solve`] | `A = L Lᵀ`; `A X = B` for `X` | cuSOLVER: potrf, potrs |
//! | [`Solve::lu`], [`Solve::lu_solve`] | `P A = L U`; `A X = B` for `X` | getrf, getrs |
//! | [`Solve::cholesky_batched`], [`Solve::cholesky_solve_batched`] | the same for each of many matrices | kernels of this crate |
//! | [`Solve::lu_batched`], [`Solve::lu_solve_batched`] | the same for each of many matrices | kernels of this crate |
//! | [`Solve::qr`], [`Solve::apply_q`], [`Solve::apply_q_transposed`] | `A = Q R`; `Q C` and `C Q`; `Qᵀ C` and `C Qᵀ` | geqrf, ormqr |
//! | [`Solve::least_squares`] | the `X` with the smallest `‖A X - B‖₂` | geqrf, ormqr, and trsm of cuBLAS |
//! | [`Solve::eigenvalues`], [`Solve::eigenvectors`] | `A v = λ v`, `A` symmetric | syevd |
//! | [`Solve::singular_values`], [`Solve::svd`] | `A = U diag(s) Vᵀ` | gesvdj |
//! | [`Solve::qr_batched`], [`Solve::apply_q_batched`], [`Solve::apply_q_transposed_batched`], [`Solve::least_squares_batched`] | the same for each of many matrices | kernels of this crate |
//! | [`Solve::eigenvalues_batched`], [`Solve::eigenvectors_batched`], [`Solve::singular_values_batched`], [`Solve::svd_batched`] | the same for each of many matrices | kernels of this crate |
//!
//! Elements are `f32` or `f64`. Results replace the matrix that is given.
//!
//! # What the device finds
//!
//! Whether a matrix has such factors is known when the operation has run. Its info word says it, in device memory: [`SolveTicket::wait`] waits and
//! gives a [`SolveFailure`] such as "not positive definite: its leading minor of order 17 is not positive". [`SolveInfo::word`] is for kernels that
//! decide on the device. Of a batch, [`BatchedTicket::wait`] gives the first matrix that failed, and how many did; there is a word for each matrix.
//!
//! A NaN or an infinity in the factors of LU, and a zero on the diagonal of factors that are solved with, are told in the same way
//! ([`SolveFailure::NotFinite`], [`SolveFailure::Singular`]), of one matrix as of a batch. `cholesky_solve` and `least_squares` say nothing of them.
//!
//! # Layouts
//!
//! Libraries store matrices column after column; [`Matrix`] does that only if it is transposed. Symmetric matrices are the same either way, LU solves
//! with the transpose of what is stored, and SVD exchanges `U` and `V`. Right-hand sides that are stored row after row are copied into columns and back, which
//! takes as much memory as they do. Only these must be stored column after column, as `Matrix::new(&buffer, columns, rows).transposed()` is: the matrix
//! of [`Solve::qr`] and both of [`Solve::least_squares`], and `u` of [`Solve::svd`]. A call that is given another layout says so. Operations on batches take any
//! layout.
//!
//! # Pivots
//!
//! Pivots are rows counted from 1, `i64` in all forms. They are checked on the device before rows are exchanged by them: one that is no row of the matrix is
//! told by `wait` as [`SolveFailure::PivotOutOfRange`], and nothing outside of the matrix is touched.
//!
//! # Determinism
//!
//! Equal calls on one device give equal bits, run after run: cuSOLVER's deterministic mode is its default, and nothing here changes it. Not so
//! `eigenvalues` and `eigenvectors` of one matrix on a GPU: cuSOLVER gives other last bits beside other work. The simulated device gives the same bytes on every machine.
//!
//! # Waiting
//!
//! cuSOLVER computes eigenvalues and singular values partly on the CPU, so that `submit` of those returns when they are done, and no graph can
//! hold them. All other operations are queued, and can be recorded: also eigenvalues and singular values of a batch, which kernels of this crate compute.
//!
//! Types in reading order: [`Solve`], [`SolveCall`], [`LeastSquaresCall`], [`SolveTicket`], [`SolveInfo`], [`BatchedCall`], [`BatchedTicket`], [`SolveFailure`].

mod batch;
mod batched;
mod batched_call;
mod batched_qr;
mod batched_spectra;
mod call;
mod eigen_and_svd;
#[doc(hidden)]
pub mod embedded_ptx;
mod handle;
mod info;
mod layout;
mod least_squares;
mod system;

pub use crate::blas::{Matrix, Real, Side, Triangle};
pub use crate::solve_failure::SolveFailure;
pub use batched::{CholeskyBatched, CholeskySolveBatched, LuBatched, LuSolveBatched};
pub use batched_call::{BatchedCall, BatchedInfo, BatchedTicket};
pub use batched_qr::{ApplyQBatched, LeastSquaresBatched, QrBatched};
pub use batched_spectra::{EigenvaluesBatched, EigenvectorsBatched, SingularValuesBatched, SvdBatched};
pub use call::SolveCall;
pub use handle::Solve;
pub use info::{SolveInfo, SolveTicket};
pub use least_squares::LeastSquaresCall;
