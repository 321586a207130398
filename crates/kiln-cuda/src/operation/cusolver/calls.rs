//! The calls of cuSOLVER that queue operations.

use std::ffi::c_void;

use kiln_operation::{Gesvd, Operation};

use super::workspace_size::{THIN, WorkspaceSizes, is_single, long, short, vector_distances};
use super::{PART_ALIGNMENT, SolverCall};
use crate::operation::OperationArguments;
use crate::operation::library_enums;

/// `CUSOLVER_STATUS_NOT_SUPPORTED`.
const NOT_SUPPORTED: i32 = 9;

impl SolverCall {
    /// Calls the function of the operation. Returns its name and what it answered.
    ///
    /// # Safety
    /// The caller holds the locks of the handle and of the host workspace, and vouches for the addresses.
    pub(super) unsafe fn call(
        &self,
        arguments: &OperationArguments<'_>,
        work: *mut c_void,
        host: *mut c_void,
    ) -> (&'static str, i32) {
        // SAFETY: the caller vouches for all of them.
        unsafe {
            match self.operation {
                Operation::Potrf(_) | Operation::Potrs(_) => self.call_cholesky(arguments, work, host),
                Operation::Getrf(_) | Operation::Getrs(_) => self.call_lu(arguments, work, host),
                Operation::Geqrf(_) | Operation::Ormqr(_) | Operation::Orgqr(_) => {
                    self.call_qr(arguments, work, host)
                }
                _ => self.call_spectrum(arguments, work, host),
            }
        }
    }

    /// Cholesky.
    ///
    /// # Safety
    /// As for [`call`](Self::call).
    unsafe fn call_cholesky(
        &self,
        arguments: &OperationArguments<'_>,
        work: *mut c_void,
        host: *mut c_void,
    ) -> (&'static str, i32) {
        let (api, raw, parameters) = (self.handle.api, self.handle.raw.raw(), self.handle.parameters.raw());
        let at = |index: usize| arguments.address(index);
        let WorkspaceSizes { device_bytes, host_bytes, .. } = self.sizes;
        // SAFETY: sizes and distances were checked to fit the memory that the caller vouches for, and fit the integers that the library takes; both
        // workspaces are as large as the library asked for.
        unsafe {
            match self.operation {
                Operation::Potrf(o) => {
                    let (kind, fill, n, lda) = (
                        library_enums::data_type(o.element),
                        library_enums::fill_mode(o.triangle),
                        long(o.n),
                        long(o.leading),
                    );
                    let status = (api.potrf)(
                        raw,
                        parameters,
                        fill,
                        n,
                        kind,
                        at(0),
                        lda,
                        kind,
                        work,
                        device_bytes,
                        host,
                        host_bytes,
                        at(1),
                    );
                    ("cusolverDnXpotrf", status)
                }
                Operation::Potrs(o) => {
                    let (kind, fill) =
                        (library_enums::data_type(o.element), library_enums::fill_mode(o.triangle));
                    let (n, columns) = (long(o.n), long(o.columns));
                    let (lda, ldb) = (long(o.a_leading), long(o.b_leading));
                    let status = (api.potrs)(
                        raw,
                        parameters,
                        fill,
                        n,
                        columns,
                        kind,
                        at(0),
                        lda,
                        kind,
                        at(1),
                        ldb,
                        at(2),
                    );
                    ("cusolverDnXpotrs", status)
                }
                _ => ("cusolverDn", NOT_SUPPORTED),
            }
        }
    }

    /// LU.
    ///
    /// # Safety
    /// As for [`call`](Self::call).
    unsafe fn call_lu(
        &self,
        arguments: &OperationArguments<'_>,
        work: *mut c_void,
        host: *mut c_void,
    ) -> (&'static str, i32) {
        let (api, raw, parameters) = (self.handle.api, self.handle.raw.raw(), self.handle.parameters.raw());
        let at = |index: usize| arguments.address(index);
        let WorkspaceSizes { device_bytes, host_bytes, .. } = self.sizes;
        // SAFETY: sizes and distances were checked to fit the memory that the caller vouches for, and fit the integers that the library takes; both
        // workspaces are as large as the library asked for.
        unsafe {
            match self.operation {
                Operation::Getrf(o) => {
                    let (kind, m, n, lda) =
                        (library_enums::data_type(o.element), long(o.m), long(o.n), long(o.leading));
                    let status = (api.getrf)(
                        raw,
                        parameters,
                        m,
                        n,
                        kind,
                        at(0),
                        lda,
                        at(1),
                        kind,
                        work,
                        device_bytes,
                        host,
                        host_bytes,
                        at(2),
                    );
                    ("cusolverDnXgetrf", status)
                }
                Operation::Getrs(o) => {
                    let (kind, op) =
                        (library_enums::data_type(o.element), library_enums::transposition(o.transposed));
                    let (n, columns) = (long(o.n), long(o.columns));
                    let (lda, ldb) = (long(o.a_leading), long(o.b_leading));
                    let status = (api.getrs)(
                        raw,
                        parameters,
                        op,
                        n,
                        columns,
                        kind,
                        at(0),
                        lda,
                        at(1),
                        kind,
                        at(2),
                        ldb,
                        at(3),
                    );
                    ("cusolverDnXgetrs", status)
                }
                _ => ("cusolverDn", NOT_SUPPORTED),
            }
        }
    }

    /// QR.
    ///
    /// # Safety
    /// As for [`call`](Self::call).
    unsafe fn call_qr(
        &self,
        arguments: &OperationArguments<'_>,
        work: *mut c_void,
        host: *mut c_void,
    ) -> (&'static str, i32) {
        let (api, raw, parameters) = (self.handle.api, self.handle.raw.raw(), self.handle.parameters.raw());
        let at = |index: usize| arguments.address(index);
        let WorkspaceSizes { device_bytes, host_bytes, elements } = self.sizes;
        // SAFETY: sizes and distances were checked to fit the memory that the caller vouches for, and fit the integers that the library takes; both
        // workspaces are as large as the library asked for.
        unsafe {
            match self.operation {
                Operation::Geqrf(o) => {
                    let kind = library_enums::data_type(o.element);
                    let (m, n, lda) = (long(o.m), long(o.n), long(o.leading));
                    let status = (api.geqrf)(
                        raw,
                        parameters,
                        m,
                        n,
                        kind,
                        at(0),
                        lda,
                        kind,
                        at(1),
                        kind,
                        work,
                        device_bytes,
                        host,
                        host_bytes,
                        at(2),
                    );
                    ("cusolverDnXgeqrf", status)
                }
                Operation::Ormqr(o) => {
                    let ormqr = if is_single(o.element) { api.sormqr } else { api.dormqr };
                    let (side, op) =
                        (library_enums::side(o.side), library_enums::transposition(o.transposed));
                    let [m, n, k, lda, ldc] = [o.m, o.n, o.k, o.a_leading, o.c_leading].map(short);
                    let status =
                        ormqr(raw, side, op, m, n, k, at(0), lda, at(1), at(2), ldc, work, elements, at(3));
                    ("cusolverDnOrmqr", status)
                }
                Operation::Orgqr(o) => {
                    let orgqr = if is_single(o.element) { api.sorgqr } else { api.dorgqr };
                    let [m, n, k, lda] = [o.m, o.n, o.k, o.leading].map(short);
                    ("cusolverDnOrgqr", orgqr(raw, m, n, k, at(0), lda, at(1), work, elements, at(2)))
                }
                _ => ("cusolverDn", NOT_SUPPORTED),
            }
        }
    }

    /// Eigenvalues and singular values.
    ///
    /// # Safety
    /// As for [`call`](Self::call).
    unsafe fn call_spectrum(
        &self,
        arguments: &OperationArguments<'_>,
        work: *mut c_void,
        host: *mut c_void,
    ) -> (&'static str, i32) {
        let (api, raw, parameters) = (self.handle.api, self.handle.raw.raw(), self.handle.parameters.raw());
        let at = |index: usize| arguments.address(index);
        let WorkspaceSizes { device_bytes, host_bytes, .. } = self.sizes;
        // SAFETY: sizes and distances were checked to fit the memory that the caller vouches for, and fit the integers that the library takes; both
        // workspaces are as large as the library asked for.
        unsafe {
            match self.operation {
                Operation::Syevd(o) => {
                    let (kind, fill) =
                        (library_enums::data_type(o.element), library_enums::fill_mode(o.triangle));
                    let (job, n, lda) = (i32::from(o.vectors), long(o.n), long(o.leading));
                    let status = (api.syevd)(
                        raw,
                        parameters,
                        job,
                        fill,
                        n,
                        kind,
                        at(0),
                        lda,
                        kind,
                        at(1),
                        kind,
                        work,
                        device_bytes,
                        host,
                        host_bytes,
                        at(2),
                    );
                    ("cusolverDnXsyevd", status)
                }
                Operation::Gesvd(o) => self.call_gesvd(&o, arguments, work),
                _ => ("cusolverDn", NOT_SUPPORTED),
            }
        }
    }

    /// # Safety
    /// As for [`call`](Self::call).
    unsafe fn call_gesvd(
        &self,
        o: &Gesvd,
        arguments: &OperationArguments<'_>,
        work: *mut c_void,
    ) -> (&'static str, i32) {
        let (api, raw) = (self.handle.api, self.handle.raw.raw());
        let at = |index: usize| arguments.address(index);
        let WorkspaceSizes { device_bytes, elements, .. } = self.sizes;
        // SAFETY: as for `call_cholesky`; without vectors, the workspace has room for them.
        unsafe {
            let gesvdj = if is_single(o.element) { api.sgesvdj } else { api.dgesvdj };
            let (job, [m, n, lda]) = (i32::from(o.vectors), [o.m, o.n, o.a_leading].map(short));
            let (ldu, ldv) = vector_distances(o);
            let first = device_bytes.next_multiple_of(PART_ALIGNMENT);
            let part = |offset| arguments.workspace().wrapping_byte_add(offset);
            let (u, v, info) = match o.vectors {
                true => (at(2), at(3), at(4)),
                false => (part(first), part(first + self.unwanted_vectors().0), at(2)),
            };
            let jacobi = self.handle.jacobi.raw();
            let status =
                gesvdj(raw, job, THIN, m, n, at(0), lda, at(1), u, ldu, v, ldv, work, elements, info, jacobi);
            ("cusolverDnGesvdj", status)
        }
    }
}
