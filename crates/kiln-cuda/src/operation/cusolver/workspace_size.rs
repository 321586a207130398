//! How much workspace a call of cuSOLVER takes, and sizes as it counts them.

use std::ffi::c_void;

use kiln_operation::{ElementType, Operation};

use super::{SolverHandle, SolverResult, check};
use crate::operation::library_enums;

/// An address that sizes of workspace are asked with. It is not accessed.
const PLACEHOLDER: usize = 1 << 32;
/// Only as many vectors as there are singular values.
pub(super) const THIN: i32 = 1;

/// Workspace of a call.
#[derive(Clone, Copy, Default)]
pub(super) struct WorkspaceSizes {
    pub(super) device_bytes: usize,
    pub(super) host_bytes: usize,
    /// Elements, for functions that count so.
    pub(super) elements: i32,
}

/// Asks how much workspace an operation takes.
pub(super) fn workspace_sizes(handle: &SolverHandle, operation: &Operation) -> SolverResult<WorkspaceSizes> {
    let (api, raw, parameters) = (handle.api, handle.raw.raw(), handle.parameters.raw());
    let none: *mut c_void = std::ptr::without_provenance_mut(PLACEHOLDER);
    let (mut sizes, data_type) = (WorkspaceSizes::default(), library_enums::data_type);
    let (device, host) = (&mut sizes.device_bytes, &mut sizes.host_bytes);
    // SAFETY: here and below, handle and parameters live, the caller holds the lock of the handle, out-parameters are live locals, and matrices are not
    // accessed.
    unsafe {
        match *operation {
            Operation::Potrf(o) => {
                let (kind, fill) = (data_type(o.element), library_enums::fill_mode(o.triangle));
                let (n, lda) = (long(o.n), long(o.leading));
                let status = (api.potrf_size)(raw, parameters, fill, n, kind, none, lda, kind, device, host);
                check("cusolverDnXpotrf_bufferSize", status)?;
            }
            Operation::Getrf(o) => {
                let kind = data_type(o.element);
                let (m, n, lda) = (long(o.m), long(o.n), long(o.leading));
                let status = (api.getrf_size)(raw, parameters, m, n, kind, none, lda, kind, device, host);
                check("cusolverDnXgetrf_bufferSize", status)?;
            }
            Operation::Geqrf(o) => {
                let kind = data_type(o.element);
                let (m, n, lda) = (long(o.m), long(o.n), long(o.leading));
                let status =
                    (api.geqrf_size)(raw, parameters, m, n, kind, none, lda, kind, none, kind, device, host);
                check("cusolverDnXgeqrf_bufferSize", status)?;
            }
            Operation::Syevd(o) => {
                let (kind, fill) = (data_type(o.element), library_enums::fill_mode(o.triangle));
                let (job, n, lda) = (i32::from(o.vectors), long(o.n), long(o.leading));
                let status = (api.syevd_size)(
                    raw, parameters, job, fill, n, kind, none, lda, kind, none, kind, device, host,
                );
                check("cusolverDnXsyevd_bufferSize", status)?;
            }
            Operation::Ormqr(o) => {
                let size = if is_single(o.element) { api.sormqr_size } else { api.dormqr_size };
                let (side, op) = (library_enums::side(o.side), library_enums::transposition(o.transposed));
                let ([m, n, k], lda, ldc) =
                    ([o.m, o.n, o.k].map(short), short(o.a_leading), short(o.c_leading));
                let count = &mut sizes.elements;
                let status = size(raw, side, op, m, n, k, none, lda, none, none, ldc, count);
                check("cusolverDnOrmqr_bufferSize", status)?;
                sizes.device_bytes = element_bytes(sizes.elements, o.element);
            }
            Operation::Orgqr(o) => {
                let size = if is_single(o.element) { api.sorgqr_size } else { api.dorgqr_size };
                let [m, n, k, lda] = [o.m, o.n, o.k, o.leading].map(short);
                let status = size(raw, m, n, k, none, lda, none, &mut sizes.elements);
                check("cusolverDnOrgqr_bufferSize", status)?;
                sizes.device_bytes = element_bytes(sizes.elements, o.element);
            }
            Operation::Gesvd(o) => {
                let size = if is_single(o.element) { api.sgesvdj_size } else { api.dgesvdj_size };
                let (job, m, n, lda) = (i32::from(o.vectors), short(o.m), short(o.n), short(o.a_leading));
                let (ldu, ldv) = vector_distances(&o);
                let (count, jacobi) = (&mut sizes.elements, handle.jacobi.raw());
                let status = size(raw, job, THIN, m, n, none, lda, none, none, ldu, none, ldv, count, jacobi);
                check("cusolverDnGesvdj_bufferSize", status)?;
                sizes.device_bytes = element_bytes(sizes.elements, o.element);
            }
            // The others take none.
            _ => {}
        }
    }
    Ok(sizes)
}

/// Distances between columns of `U` and of `V`.
pub(super) fn vector_distances(operation: &kiln_operation::Gesvd) -> (i32, i32) {
    match operation.vectors {
        true => (short(operation.u_leading), short(operation.v_leading)),
        false => (short(operation.m), short(operation.n)),
    }
}

pub(super) fn is_single(element: ElementType) -> bool {
    element == ElementType::F32
}

pub(super) fn element_bytes(elements: i32, element: ElementType) -> usize {
    usize::try_from(elements).unwrap_or(0) * element.bytes() as usize
}

/// A size or distance, which was checked to fit.
pub(super) fn long(size: u64) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

/// A size or distance, which was checked to fit.
pub(super) fn short(size: u64) -> i32 {
    i32::try_from(size).unwrap_or(i32::MAX)
}
