//! Factorisations, eigenvalues and singular values by cuSOLVER.
//!
//! A device has one handle, because each costs 96 MiB of device memory. The stream is state of the handle, so that it is set before each call under its
//! lock. cuSOLVER says beforehand how much workspace a call takes: that of the device is memory of the caller, that of the host belongs to the loaded
//! operation. A call with host workspace is over before the next one may use it.

mod calls;
mod symbols;
mod workspace_size;

use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys;
use kiln_driver::{Code, Error, Result, Timeout, WallClock};
use kiln_operation::Operation;

use super::PreparedOperation;
use super::arguments::OperationArguments;
use super::failure::LibraryFailure;
use crate::context::Context;
use crate::device::CudaDevice;
use crate::host_wait::wait_until;
use crate::libraries::LibraryKind;
use crate::native_handle::Native;
use symbols::SolverApi;
use workspace_size::{WorkspaceSizes, workspace_sizes};

type SolverResult<T> = std::result::Result<T, LibraryFailure>;

/// Parts of the workspace begin at multiples of this.
const PART_ALIGNMENT: usize = 256;

/// The handle of a device, with the parameters of its calls, which are the defaults.
pub(crate) struct SolverHandle {
    api: &'static SolverApi,
    raw: Native<c_void>,
    parameters: Native<c_void>,
    /// Parameters of singular values.
    jacobi: Native<c_void>,
    context: Arc<Context>,
    /// Held while its stream is set and a call uses it.
    turn: Mutex<()>,
}

/// An operation that one call of cuSOLVER queues.
pub(super) struct SolverCall {
    operation: Operation,
    handle: Arc<SolverHandle>,
    sizes: WorkspaceSizes,
    /// Host workspace, aligned as `malloc` aligns.
    host: Mutex<Vec<u128>>,
}

impl SolverHandle {
    fn create(call: &'static str, context: &Arc<Context>) -> Result<Arc<Self>> {
        let api = SolverApi::load(call)?;
        let told = |failure: LibraryFailure| failure.error(call, "a handle");
        let mut raw = Native::NULL;
        // SAFETY: the out-parameter is a live local, and the context is current.
        check("cusolverDnCreate", unsafe { (api.create)(raw.slot()) }).map_err(told)?;
        let (parameters, jacobi, turn) = (Native::NULL, Native::NULL, Mutex::new(()));
        let mut made = Self { api, raw, parameters, jacobi, context: context.clone(), turn };
        // SAFETY: the out-parameter is a live field.
        let status = unsafe { (api.create_params)(made.parameters.slot()) };
        check("cusolverDnCreateParams", status).map_err(told)?;
        // SAFETY: the out-parameter is a live field.
        let status = unsafe { (api.create_gesvdj_info)(made.jacobi.slot()) };
        check("cusolverDnCreateGesvdjInfo", status).map_err(told)?;
        Ok(Arc::new(made))
    }
}

impl Drop for SolverHandle {
    fn drop(&mut self) {
        let (api, raw, parameters, jacobi) = (self.api, self.raw, self.parameters, self.jacobi);
        // Destroying a handle waits for the device.
        self.context.free_when_idle(move |_| {
            // SAFETY: this was the only owner; what was not made is null.
            unsafe {
                if jacobi != Native::NULL {
                    (api.destroy_gesvdj_info)(jacobi.raw());
                }
                if parameters != Native::NULL {
                    (api.destroy_params)(parameters.raw());
                }
                (api.destroy)(raw.raw());
            }
            0
        });
    }
}

impl SolverCall {
    pub(super) fn prepare(call: &'static str, device: &CudaDevice, operation: &Operation) -> Result<Self> {
        let mut known = device.cusolver.lock().unwrap_or_else(PoisonError::into_inner);
        let handle = match &*known {
            Some(handle) => handle.clone(),
            None => known.insert(SolverHandle::create(call, &device.context)?).clone(),
        };
        drop(known);
        let turn = handle.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let sizes = workspace_sizes(&handle, operation)
            .map_err(|failure| failure.error(call, &operation.to_string()))?;
        drop(turn);
        let mut host = Vec::new();
        host.try_reserve_exact(sizes.host_bytes.div_ceil(size_of::<u128>()))
            .map_err(|_| Error::out_of_memory(call, sizes.host_bytes as u64, None))?;
        host.resize(sizes.host_bytes.div_ceil(size_of::<u128>()), 0);
        Ok(Self { operation: *operation, handle, sizes, host: Mutex::new(host) })
    }

    /// Bytes of `U` and of `V`, which cuSOLVER writes although only singular values are asked for.
    fn unwanted_vectors(&self) -> (usize, usize) {
        match self.operation {
            Operation::Gesvd(o) if !o.vectors => {
                let bytes = |rows: u64| (rows * o.values() * o.element.bytes()) as usize;
                (bytes(o.m).next_multiple_of(PART_ALIGNMENT), bytes(o.n))
            }
            _ => (0, 0),
        }
    }
}

impl PreparedOperation for SolverCall {
    fn workspace_bytes(&self) -> u64 {
        let (u, v) = self.unwanted_vectors();
        match u + v {
            0 => self.sizes.device_bytes as u64,
            more => (self.sizes.device_bytes.next_multiple_of(PART_ALIGNMENT) + more) as u64,
        }
    }

    fn waits_for_device(&self) -> bool {
        self.operation.waits_for_device() || self.sizes.host_bytes > 0
    }

    /// A function of cuSOLVER that cannot be captured fails, and leaves an error behind that the next call of the thread would find.
    fn is_captured_at_load(&self) -> bool {
        false
    }

    unsafe fn queue(&self, stream: sys::CUstream, arguments: &OperationArguments<'_>) -> SolverResult<()> {
        let handle = &self.handle;
        let _turn = handle.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let mut host = self.host.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: here and below, the lock keeps others from the handle, and the caller vouches for stream and addresses.
        check("cusolverDnSetStream", unsafe { (handle.api.set_stream)(handle.raw.raw(), stream) })?;
        let host_workspace = match self.sizes.host_bytes {
            0 => std::ptr::null_mut(),
            _ => host.as_mut_ptr().cast::<c_void>(),
        };
        let device_workspace = match self.sizes.device_bytes {
            0 => std::ptr::null_mut(),
            _ => arguments.workspace(),
        };
        // SAFETY: as above.
        let (call, status) = unsafe { self.call(arguments, device_workspace, host_workspace) };
        check(call, status)?;
        if self.sizes.host_bytes > 0 {
            self.wait(stream);
        }
        Ok(())
    }
}

impl SolverCall {
    /// Waits until a stream is idle, so that host workspace can be used again. A fault of the device is found by the next call.
    fn wait(&self, stream: sys::CUstream) {
        let Ok(api) = self.handle.context.pass("submit") else { return };
        // SAFETY: the caller of `queue` has the stream pinned.
        let is_idle = || Ok(Code(unsafe { (api.stream_query)(stream) }) != Code::NOT_READY);
        let _ = wait_until(&WallClock::new(), Timeout::Never, is_idle);
    }
}

fn check(call: &'static str, status: i32) -> SolverResult<()> {
    LibraryFailure::check(LibraryKind::Cusolver, call, status)
}
