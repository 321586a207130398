//! Operations of cuBLAS: on vectors, sums of matrices, and on triangular and symmetric matrices.
//!
//! A device has one handle, because each costs 64 MiB of device memory. Stream, workspace and the place of scalars are state of the handle, so that they
//! are set before each call under its lock.

mod calls;

use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys;
use kiln_driver::{Error, Result};
use kiln_operation::Operation;

use super::PreparedOperation;
use super::arguments::OperationArguments;
use super::failure::LibraryFailure;
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
        sgeam = "cublasSgeam_64"(Handle, i32, i32, i64, i64, In, In, i64, In, In, i64, Out, i64);
        dgeam = "cublasDgeam_64"(Handle, i32, i32, i64, i64, In, In, i64, In, In, i64, Out, i64);
        ssymm = "cublasSsymm_v2_64"(Handle, i32, i32, i64, i64, In, In, i64, In, i64, In, Out, i64);
        dsymm = "cublasDsymm_v2_64"(Handle, i32, i32, i64, i64, In, In, i64, In, i64, In, Out, i64);
        strmm = "cublasStrmm_v2_64"(Handle, i32, i32, i32, i32, i64, i64, In, In, i64, In, i64, Out, i64);
        dtrmm = "cublasDtrmm_v2_64"(Handle, i32, i32, i32, i32, i64, i64, In, In, i64, In, i64, Out, i64);
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
                | Operation::Geam(_)
                | Operation::Symm(_)
                | Operation::Trmm(_)
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
            Operation::Syrk(_) | Operation::Trsm(_) | Operation::Symm(_) | Operation::Trmm(_) => {
                MATRIX_WORKSPACE_BYTES
            }
            _ => VECTOR_WORKSPACE_BYTES,
        }
    }

    unsafe fn queue(
        &self,
        stream: sys::CUstream,
        arguments: &OperationArguments<'_>,
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
        let (call, status) = unsafe { calls::Calling { api, handle, arguments }.call(&self.operation) };
        check(call, status)
    }
}

fn check(call: &'static str, status: i32) -> std::result::Result<(), LibraryFailure> {
    LibraryFailure::check(LibraryKind::Cublas, call, status)
}
