//! Operations of cuBLAS: on vectors, and on triangular and symmetric matrices.
//!
//! A device has one handle, because each costs 64 MiB of device memory. Stream, workspace and the place of scalars are state of the handle, so that they
//! are set before each call under its lock.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys;
use kiln_driver::{Error, Result};
use kiln_operation::{ElementType, Operation};

use super::PreparedOperation;
use super::arguments::OperationArguments;
use super::failure::LibraryFailure;
use super::library_enums::{self, scalar};
use super::symbol_lookup::entry_points;
use crate::context::Context;
use crate::device::CudaDevice;
use crate::libraries::LibraryKind;
use crate::native_handle::Native;

type Handle = *mut c_void;
type In = *const c_void;
type Out = *mut c_void;

/// Where scalars lie: `cublasPointerMode_t`.
const SCALARS_ON_HOST: i32 = 0;
const SCALARS_ON_DEVICE: i32 = 1;
/// Workspace for operations on vectors.
const VECTOR_WORKSPACE_BYTES: u64 = 4 << 20;
/// Workspace for operations on matrices, as cuBLAS recommends.
const MATRIX_WORKSPACE_BYTES: u64 = 32 << 20;

entry_points! {
    /// The entry points of cuBLAS, for `f32` (`s`) and `f64` (`d`).
    CublasApi of LibraryKind::Cublas => {
        create = "cublasCreate_v2"(*mut Handle);
        destroy = "cublasDestroy_v2"(Handle);
        set_stream = "cublasSetStream_v2"(Handle, sys::CUstream);
        set_workspace = "cublasSetWorkspace_v2"(Handle, Out, usize);
        set_pointer_mode = "cublasSetPointerMode_v2"(Handle, i32);
        sgemv = "cublasSgemv_v2_64"(Handle, i32, i64, i64, In, In, i64, In, i64, In, Out, i64);
        dgemv = "cublasDgemv_v2_64"(Handle, i32, i64, i64, In, In, i64, In, i64, In, Out, i64);
        sger = "cublasSger_v2_64"(Handle, i64, i64, In, In, i64, In, i64, Out, i64);
        dger = "cublasDger_v2_64"(Handle, i64, i64, In, In, i64, In, i64, Out, i64);
        sdot = "cublasSdot_v2_64"(Handle, i64, In, i64, In, i64, Out);
        ddot = "cublasDdot_v2_64"(Handle, i64, In, i64, In, i64, Out);
        snrm2 = "cublasSnrm2_v2_64"(Handle, i64, In, i64, Out);
        dnrm2 = "cublasDnrm2_v2_64"(Handle, i64, In, i64, Out);
        saxpy = "cublasSaxpy_v2_64"(Handle, i64, In, In, i64, Out, i64);
        daxpy = "cublasDaxpy_v2_64"(Handle, i64, In, In, i64, Out, i64);
        sscal = "cublasSscal_v2_64"(Handle, i64, In, Out, i64);
        dscal = "cublasDscal_v2_64"(Handle, i64, In, Out, i64);
        scopy = "cublasScopy_v2_64"(Handle, i64, In, i64, Out, i64);
        dcopy = "cublasDcopy_v2_64"(Handle, i64, In, i64, Out, i64);
        sswap = "cublasSswap_v2_64"(Handle, i64, Out, i64, Out, i64);
        dswap = "cublasDswap_v2_64"(Handle, i64, Out, i64, Out, i64);
        sasum = "cublasSasum_v2_64"(Handle, i64, In, i64, Out);
        dasum = "cublasDasum_v2_64"(Handle, i64, In, i64, Out);
        isamax = "cublasIsamax_v2_64"(Handle, i64, In, i64, Out);
        idamax = "cublasIdamax_v2_64"(Handle, i64, In, i64, Out);
        ssyrk = "cublasSsyrk_v2_64"(Handle, i32, i32, i64, i64, In, In, i64, In, Out, i64);
        dsyrk = "cublasDsyrk_v2_64"(Handle, i32, i32, i64, i64, In, In, i64, In, Out, i64);
        strsm = "cublasStrsm_v2_64"(Handle, i32, i32, i32, i32, i64, i64, In, In, i64, Out, i64);
        dtrsm = "cublasDtrsm_v2_64"(Handle, i32, i32, i32, i32, i64, i64, In, In, i64, Out, i64);
    }
}

/// The handle of a device.
pub(crate) struct CublasHandle {
    api: &'static CublasApi,
    raw: Native<c_void>,
    context: Arc<Context>,
    /// Held while its state is set and a call uses it.
    turn: Mutex<()>,
}

/// An operation that one call of cuBLAS queues.
pub(super) struct CublasCall {
    operation: Operation,
    handle: Arc<CublasHandle>,
}

impl CublasHandle {
    fn create(call: &'static str, context: &Arc<Context>) -> Result<Arc<Self>> {
        let api = CublasApi::load(call)?;
        let mut raw = Native::NULL;
        // SAFETY: the out-parameter is a live local, and the context is current.
        let status = unsafe { (api.create)(raw.slot()) };
        check("cublasCreate", status).map_err(|failure| failure.error(call, "a handle"))?;
        Ok(Arc::new(Self { api, raw, context: context.clone(), turn: Mutex::new(()) }))
    }
}

impl Drop for CublasHandle {
    fn drop(&mut self) {
        let (api, raw) = (self.api, self.raw);
        // Destroying a handle waits for the device.
        self.context.free_when_idle(move |_| {
            // SAFETY: this was the only owner.
            unsafe { (api.destroy)(raw.raw()) };
            0
        });
    }
}

impl CublasCall {
    pub(super) fn prepare(call: &'static str, device: &CudaDevice, operation: &Operation) -> Result<Self> {
        if !matches!(
            operation,
            Operation::Gemv(_)
                | Operation::Ger(_)
                | Operation::Dot(_)
                | Operation::Nrm2(_)
                | Operation::Axpy(_)
                | Operation::Scal(_)
                | Operation::VectorCopy(_)
                | Operation::Swap(_)
                | Operation::Asum(_)
                | Operation::Iamax(_)
                | Operation::Syrk(_)
                | Operation::Trsm(_)
        ) {
            return Err(Error::unsupported(call, "this operation", operation.name()));
        }
        let mut known = device.cublas.lock().unwrap_or_else(PoisonError::into_inner);
        let handle = match &*known {
            Some(handle) => handle.clone(),
            None => known.insert(CublasHandle::create(call, &device.context)?).clone(),
        };
        Ok(Self { operation: *operation, handle })
    }
}

impl PreparedOperation for CublasCall {
    fn workspace_bytes(&self) -> u64 {
        match self.operation {
            Operation::Syrk(_) | Operation::Trsm(_) => MATRIX_WORKSPACE_BYTES,
            _ => VECTOR_WORKSPACE_BYTES,
        }
    }

    unsafe fn queue(
        &self,
        stream: sys::CUstream,
        arguments: &OperationArguments,
    ) -> std::result::Result<(), LibraryFailure> {
        let (api, handle) = (self.handle.api, self.handle.raw.raw());
        let mode = match self.operation {
            Operation::Dot(_) | Operation::Nrm2(_) | Operation::Asum(_) | Operation::Iamax(_) => {
                SCALARS_ON_DEVICE
            }
            _ => SCALARS_ON_HOST,
        };
        let _turn = self.handle.turn.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: here and below, the lock keeps others from the handle, and the caller vouches for stream and addresses. A new stream takes the
        // workspace away, so that it is set behind the stream.
        check("cublasSetStream", unsafe { (api.set_stream)(handle, stream) })?;
        let bytes = self.workspace_bytes() as usize;
        // SAFETY: as above.
        check("cublasSetWorkspace", unsafe { (api.set_workspace)(handle, arguments.workspace(), bytes) })?;
        // SAFETY: as above.
        check("cublasSetPointerMode", unsafe { (api.set_pointer_mode)(handle, mode) })?;
        // SAFETY: as above.
        let (call, status) = unsafe { self.call(api, handle, arguments) };
        check(call, status)
    }
}

impl CublasCall {
    /// # Safety
    /// The caller holds the lock of the handle, and vouches for the addresses.
    unsafe fn call(
        &self,
        api: &CublasApi,
        handle: Handle,
        arguments: &OperationArguments,
    ) -> (&'static str, i32) {
        let at = |index: usize| arguments.address(index);
        let is_single = |element: ElementType| element == ElementType::F32;
        let number = |element, index| scalar(element, arguments.scalar(index));
        let transposition = library_enums::transposition;
        // SAFETY: sizes and distances were checked to fit the memory that the caller vouches for, and fit 63 bits; scalars are live locals.
        unsafe {
            match self.operation {
                Operation::Gemv(o) => {
                    let (alpha, beta) = (number(o.element, 3), beta(o.element, o.accumulate, arguments, 4));
                    let gemv = if is_single(o.element) { api.sgemv } else { api.dgemv };
                    let (m, n, lda, incx, incy) = long5(o.m, o.n, o.leading, o.x_step, o.y_step);
                    let op = transposition(o.transposed);
                    let (alpha, beta) = (alpha.as_ptr().cast(), beta.as_ptr().cast());
                    ("cublasGemv", gemv(handle, op, m, n, alpha, at(0), lda, at(1), incx, beta, at(2), incy))
                }
                Operation::Ger(o) => {
                    let alpha = number(o.element, 3);
                    let ger = if is_single(o.element) { api.sger } else { api.dger };
                    let (m, n, lda, incx, incy) = long5(o.m, o.n, o.leading, o.x_step, o.y_step);
                    let alpha = alpha.as_ptr().cast();
                    ("cublasGer", ger(handle, m, n, alpha, at(0), incx, at(1), incy, at(2), lda))
                }
                Operation::Axpy(o) => {
                    let alpha = number(o.element, 2);
                    let axpy = if is_single(o.element) { api.saxpy } else { api.daxpy };
                    let (n, incx, incy) = (long(o.n), long(o.x_step), long(o.y_step));
                    ("cublasAxpy", axpy(handle, n, alpha.as_ptr().cast(), at(0), incx, at(1), incy))
                }
                Operation::Scal(o) => {
                    let alpha = number(o.element, 1);
                    let scal = if is_single(o.element) { api.sscal } else { api.dscal };
                    ("cublasScal", scal(handle, long(o.n), alpha.as_ptr().cast(), at(0), long(o.x_step)))
                }
                Operation::Syrk(o) => {
                    let (alpha, beta) = (number(o.element, 2), beta(o.element, o.accumulate, arguments, 3));
                    let syrk = if is_single(o.element) { api.ssyrk } else { api.dsyrk };
                    let (fill, op) = (library_enums::fill_mode(o.triangle), transposition(o.transposed));
                    let (n, k, lda, ldc, _) = long5(o.n, o.k, o.a_leading, o.c_leading, 0);
                    let (alpha, beta) = (alpha.as_ptr().cast(), beta.as_ptr().cast());
                    ("cublasSyrk", syrk(handle, fill, op, n, k, alpha, at(0), lda, beta, at(1), ldc))
                }
                Operation::Trsm(o) => {
                    let alpha = number(o.element, 2);
                    let trsm = if is_single(o.element) { api.strsm } else { api.dtrsm };
                    let (side, fill) = (library_enums::side(o.side), library_enums::fill_mode(o.triangle));
                    let (op, diagonal) = (transposition(o.transposed), library_enums::diagonal(o.diagonal));
                    let (m, n, lda, ldb, _) = long5(o.m, o.n, o.a_leading, o.b_leading, 0);
                    let alpha = alpha.as_ptr().cast();
                    let status = trsm(handle, side, fill, op, diagonal, m, n, alpha, at(0), lda, at(1), ldb);
                    ("cublasTrsm", status)
                }
                _ => self.call_plain(api, handle, arguments),
            }
        }
    }
}

impl CublasCall {
    /// Operations on vectors that take no scalars from the host.
    ///
    /// # Safety
    /// As for [`call`](Self::call).
    unsafe fn call_plain(
        &self,
        api: &CublasApi,
        handle: Handle,
        arguments: &OperationArguments,
    ) -> (&'static str, i32) {
        let at = |index: usize| arguments.address(index);
        let is_single = |element: ElementType| element == ElementType::F32;
        // SAFETY: sizes and distances were checked to fit the memory that the caller vouches for, and fit 63 bits.
        unsafe {
            match self.operation {
                Operation::Dot(o) => {
                    let dot = if is_single(o.element) { api.sdot } else { api.ddot };
                    let (n, incx, incy) = (long(o.n), long(o.x_step), long(o.y_step));
                    ("cublasDot", dot(handle, n, at(0), incx, at(1), incy, at(2)))
                }
                Operation::Nrm2(o) => {
                    let nrm2 = if is_single(o.element) { api.snrm2 } else { api.dnrm2 };
                    ("cublasNrm2", nrm2(handle, long(o.n), at(0), long(o.x_step), at(1)))
                }
                Operation::VectorCopy(o) => {
                    let copy = if is_single(o.element) { api.scopy } else { api.dcopy };
                    ("cublasCopy", copy(handle, long(o.n), at(0), long(o.x_step), at(1), long(o.y_step)))
                }
                Operation::Swap(o) => {
                    let swap = if is_single(o.element) { api.sswap } else { api.dswap };
                    ("cublasSwap", swap(handle, long(o.n), at(0), long(o.x_step), at(1), long(o.y_step)))
                }
                Operation::Asum(o) => {
                    let asum = if is_single(o.element) { api.sasum } else { api.dasum };
                    ("cublasAsum", asum(handle, long(o.n), at(0), long(o.x_step), at(1)))
                }
                Operation::Iamax(o) => {
                    let iamax = if is_single(o.element) { api.isamax } else { api.idamax };
                    ("cublasIamax", iamax(handle, long(o.n), at(0), long(o.x_step), at(1)))
                }
                _ => ("cublas", NOT_SUPPORTED),
            }
        }
    }
}

/// `CUBLAS_STATUS_NOT_SUPPORTED`.
const NOT_SUPPORTED: i32 = 15;

fn beta(element: ElementType, accumulate: bool, arguments: &OperationArguments, index: usize) -> [u8; 8] {
    scalar(element, if accumulate { arguments.scalar(index) } else { 0.0 })
}

/// A size or distance, which was checked to fit.
fn long(size: u64) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

fn long5(a: u64, b: u64, c: u64, d: u64, e: u64) -> (i64, i64, i64, i64, i64) {
    (long(a), long(b), long(c), long(d), long(e))
}

fn check(call: &'static str, status: i32) -> std::result::Result<(), LibraryFailure> {
    LibraryFailure::check(LibraryKind::Cublas, call, status)
}
