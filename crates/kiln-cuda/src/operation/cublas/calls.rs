//! The calls of cuBLAS, one for each operation.

use std::ffi::c_void;

use kiln_operation::{ElementType, Operation};

use super::{CublasApi, Handle};
use crate::operation::arguments::OperationArguments;
use crate::operation::library_enums::{diagonal, fill_mode, scalar, side, transposition};

/// `CUBLAS_STATUS_NOT_SUPPORTED`.
const NOT_SUPPORTED: i32 = 15;

/// The name of a function of cuBLAS, and what it answered.
type Called = (&'static str, i32);

/// One call: whom it goes to, and with what.
pub(super) struct Calling<'a> {
    pub(super) api: &'a CublasApi,
    pub(super) handle: Handle,
    pub(super) arguments: &'a OperationArguments<'a>,
}

impl Calling<'_> {
    /// Makes the call of an operation.
    ///
    /// # Safety
    /// The caller holds the lock of the handle, and vouches for the addresses.
    pub(super) unsafe fn call(&self, operation: &Operation) -> Called {
        // SAFETY: the caller vouches for what these need, which is the same.
        unsafe {
            match operation {
                Operation::Axpy(_)
                | Operation::Scal(_)
                | Operation::Dot(_)
                | Operation::Nrm2(_)
                | Operation::VectorCopy(_)
                | Operation::Swap(_)
                | Operation::Asum(_)
                | Operation::Iamax(_) => self.call_vector(operation),
                Operation::Gemv(_) | Operation::Ger(_) => self.call_matrix_and_vector(operation),
                Operation::Symm(_) | Operation::Trmm(_) => self.call_products(operation),
                _ => self.call_matrices(operation),
            }
        }
    }

    /// Operations on vectors.
    ///
    /// # Safety
    /// As for [`call`](Self::call).
    unsafe fn call_vector(&self, operation: &Operation) -> Called {
        let (api, handle) = (self.api, self.handle);
        let at = |index| self.at(index);
        // SAFETY: sizes and distances were checked to fit the memory that the caller vouches for, and fit 63 bits; scalars are live locals.
        unsafe {
            match *operation {
                Operation::Axpy(o) => {
                    let (alpha, axpy) = (self.number(o.element, 2), one_of(o.element, api.saxpy, api.daxpy));
                    let [n, incx, incy] = [o.n, o.x_step, o.y_step].map(long);
                    ("cublasAxpy", axpy(handle, n, alpha.as_ptr().cast(), at(0), incx, at(1), incy))
                }
                Operation::Scal(o) => {
                    let (alpha, scal) = (self.number(o.element, 1), one_of(o.element, api.sscal, api.dscal));
                    ("cublasScal", scal(handle, long(o.n), alpha.as_ptr().cast(), at(0), long(o.x_step)))
                }
                Operation::Dot(o) => {
                    let dot = one_of(o.element, api.sdot, api.ddot);
                    let [n, incx, incy] = [o.n, o.x_step, o.y_step].map(long);
                    ("cublasDot", dot(handle, n, at(0), incx, at(1), incy, at(2)))
                }
                Operation::Nrm2(o) => {
                    let nrm2 = one_of(o.element, api.snrm2, api.dnrm2);
                    ("cublasNrm2", nrm2(handle, long(o.n), at(0), long(o.x_step), at(1)))
                }
                Operation::VectorCopy(o) => {
                    let copy = one_of(o.element, api.scopy, api.dcopy);
                    ("cublasCopy", copy(handle, long(o.n), at(0), long(o.x_step), at(1), long(o.y_step)))
                }
                Operation::Swap(o) => {
                    let swap = one_of(o.element, api.sswap, api.dswap);
                    ("cublasSwap", swap(handle, long(o.n), at(0), long(o.x_step), at(1), long(o.y_step)))
                }
                Operation::Asum(o) => {
                    let asum = one_of(o.element, api.sasum, api.dasum);
                    ("cublasAsum", asum(handle, long(o.n), at(0), long(o.x_step), at(1)))
                }
                Operation::Iamax(o) => {
                    let iamax = one_of(o.element, api.isamax, api.idamax);
                    ("cublasIamax", iamax(handle, long(o.n), at(0), long(o.x_step), at(1)))
                }
                _ => ("cublas", NOT_SUPPORTED),
            }
        }
    }

    /// Operations on a matrix and vectors.
    ///
    /// # Safety
    /// As for [`call`](Self::call).
    unsafe fn call_matrix_and_vector(&self, operation: &Operation) -> Called {
        let (api, handle) = (self.api, self.handle);
        let at = |index| self.at(index);
        // SAFETY: as for operations on vectors.
        unsafe {
            match *operation {
                Operation::Gemv(o) => {
                    let (alpha, beta) = (self.number(o.element, 3), self.beta(o.element, o.accumulate, 4));
                    let gemv = one_of(o.element, api.sgemv, api.dgemv);
                    let [m, n, lda, incx, incy] = [o.m, o.n, o.leading, o.x_step, o.y_step].map(long);
                    let op = transposition(o.transposed);
                    let (alpha, beta) = (alpha.as_ptr().cast(), beta.as_ptr().cast());
                    ("cublasGemv", gemv(handle, op, m, n, alpha, at(0), lda, at(1), incx, beta, at(2), incy))
                }
                Operation::Ger(o) => {
                    let (alpha, ger) = (self.number(o.element, 3), one_of(o.element, api.sger, api.dger));
                    let [m, n, lda, incx, incy] = [o.m, o.n, o.leading, o.x_step, o.y_step].map(long);
                    let alpha = alpha.as_ptr().cast();
                    ("cublasGer", ger(handle, m, n, alpha, at(0), incx, at(1), incy, at(2), lda))
                }
                _ => ("cublas", NOT_SUPPORTED),
            }
        }
    }

    /// Other operations on matrices.
    ///
    /// # Safety
    /// As for [`call`](Self::call).
    unsafe fn call_matrices(&self, operation: &Operation) -> Called {
        let (api, handle) = (self.api, self.handle);
        let at = |index| self.at(index);
        // SAFETY: as for operations on vectors.
        unsafe {
            match *operation {
                Operation::Syrk(o) => {
                    let (alpha, beta) = (self.number(o.element, 2), self.beta(o.element, o.accumulate, 3));
                    let syrk = one_of(o.element, api.ssyrk, api.dsyrk);
                    let (fill, op) = (fill_mode(o.triangle), transposition(o.transposed));
                    let [n, k, lda, ldc] = [o.n, o.k, o.a_leading, o.c_leading].map(long);
                    let (alpha, beta) = (alpha.as_ptr().cast(), beta.as_ptr().cast());
                    ("cublasSyrk", syrk(handle, fill, op, n, k, alpha, at(0), lda, beta, at(1), ldc))
                }
                Operation::Trsm(o) => {
                    let (alpha, trsm) = (self.number(o.element, 2), one_of(o.element, api.strsm, api.dtrsm));
                    let (on, fill, op) = (side(o.side), fill_mode(o.triangle), transposition(o.transposed));
                    let [m, n, lda, ldb] = [o.m, o.n, o.a_leading, o.b_leading].map(long);
                    let (unit, alpha) = (diagonal(o.diagonal), alpha.as_ptr().cast());
                    let status = trsm(handle, on, fill, op, unit, m, n, alpha, at(0), lda, at(1), ldb);
                    ("cublasTrsm", status)
                }
                Operation::Geam(o) => {
                    let geam = one_of(o.element, api.sgeam, api.dgeam);
                    let [m, n, lda, ldb, ldc] = [o.m, o.n, o.a_leading, o.b_leading, o.c_leading].map(long);
                    let (op_a, op_b) = (transposition(o.a_transposed), transposition(o.b_transposed));
                    let first_scalar = 2 + usize::from(o.has_b);
                    let alpha = self.number(o.element, first_scalar);
                    let beta = self.beta(o.element, o.has_b, first_scalar + 1);
                    // Without `B` the library adds 0 times `C`, which it does not read then.
                    let (b, ldb, c) = if o.has_b { (at(1), ldb, at(2)) } else { (at(1), ldc, at(1)) };
                    let (alpha, beta) = (alpha.as_ptr().cast(), beta.as_ptr().cast());
                    let status = geam(handle, op_a, op_b, m, n, alpha, at(0), lda, beta, b, ldb, c, ldc);
                    ("cublasGeam", status)
                }
                _ => ("cublas", NOT_SUPPORTED),
            }
        }
    }

    /// Products with a symmetric or triangular matrix.
    ///
    /// # Safety
    /// As for [`call`](Self::call).
    unsafe fn call_products(&self, operation: &Operation) -> Called {
        let (api, handle) = (self.api, self.handle);
        let at = |index| self.at(index);
        // SAFETY: as for operations on vectors.
        unsafe {
            match *operation {
                Operation::Symm(o) => {
                    let (alpha, beta) = (self.number(o.element, 3), self.beta(o.element, o.accumulate, 4));
                    let symm = one_of(o.element, api.ssymm, api.dsymm);
                    let (on, fill) = (side(o.side), fill_mode(o.triangle));
                    let [m, n, lda, ldb, ldc] = [o.m, o.n, o.a_leading, o.b_leading, o.c_leading].map(long);
                    let (alpha, beta) = (alpha.as_ptr().cast(), beta.as_ptr().cast());
                    let status =
                        symm(handle, on, fill, m, n, alpha, at(0), lda, at(1), ldb, beta, at(2), ldc);
                    ("cublasSymm", status)
                }
                Operation::Trmm(o) => {
                    let (alpha, trmm) = (self.number(o.element, 3), one_of(o.element, api.strmm, api.dtrmm));
                    let (on, fill, op) = (side(o.side), fill_mode(o.triangle), transposition(o.transposed));
                    let [m, n, lda, ldb, ldc] = [o.m, o.n, o.a_leading, o.b_leading, o.c_leading].map(long);
                    let (unit, alpha) = (diagonal(o.diagonal), alpha.as_ptr().cast());
                    let status =
                        trmm(handle, on, fill, op, unit, m, n, alpha, at(0), lda, at(1), ldb, at(2), ldc);
                    ("cublasTrmm", status)
                }
                _ => ("cublas", NOT_SUPPORTED),
            }
        }
    }

    /// The address of an operand.
    fn at(&self, index: usize) -> *mut c_void {
        self.arguments.address(index)
    }

    /// A scalar, in the type of the elements.
    fn number(&self, element: ElementType, index: usize) -> [u8; 8] {
        scalar(element, self.arguments.scalar(index))
    }

    /// The factor of what is added, or 0 where nothing is.
    fn beta(&self, element: ElementType, is_added: bool, index: usize) -> [u8; 8] {
        scalar(element, if is_added { self.arguments.scalar(index) } else { 0.0 })
    }
}

/// The function for a type: `f32`, or `f64`.
fn one_of<F>(element: ElementType, single: F, double: F) -> F {
    if element == ElementType::F32 { single } else { double }
}

/// A size or distance, which was checked to fit.
fn long(size: u64) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}
