//! Fourier transforms by cuFFT.

use std::ffi::{c_int, c_longlong, c_void};
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys;
use kiln_driver::Result;
use kiln_operation::{ElementType, FftKind, FftOperation};

use super::PreparedOperation;
use super::arguments::OperationArguments;
use super::failure::LibraryFailure;
use super::library_enums;
use super::symbol_lookup::entry_points;
use crate::context::Context;
use crate::device::CudaDevice;
use crate::libraries::LibraryKind;

type Plan = c_int;
type Data = *mut c_void;
type Sizes = *mut c_longlong;
type FftResult<T> = std::result::Result<T, LibraryFailure>;

/// The sign of the exponent.
const FORWARD: c_int = -1;
const INVERSE: c_int = 1;

entry_points! {
    /// The entry points of cuFFT.
    FftApi of LibraryKind::Cufft => {
        create = "cufftCreate"(*mut Plan);
        destroy = "cufftDestroy"(Plan);
        set_auto_allocation = "cufftSetAutoAllocation"(Plan, c_int);
        make = "cufftMakePlanMany64"(
            Plan, c_int, Sizes, Sizes, c_longlong, c_longlong, Sizes, c_longlong, c_longlong, c_int, c_longlong,
            *mut usize,
        );
        set_stream = "cufftSetStream"(Plan, sys::CUstream);
        set_work_area = "cufftSetWorkArea"(Plan, Data);
        c2c = "cufftExecC2C"(Plan, Data, Data, c_int);
        z2z = "cufftExecZ2Z"(Plan, Data, Data, c_int);
        r2c = "cufftExecR2C"(Plan, Data, Data);
        d2z = "cufftExecD2Z"(Plan, Data, Data);
        c2r = "cufftExecC2R"(Plan, Data, Data);
        z2d = "cufftExecZ2D"(Plan, Data, Data);
    }
}

/// A plan of cuFFT.
pub(super) struct FftPlan {
    operation: FftOperation,
    api: &'static FftApi,
    plan: Plan,
    workspace_bytes: usize,
    context: Arc<Context>,
    /// Stream and work area are state of the plan: held while they are set and the plan is executed.
    turn: Mutex<()>,
}

impl FftPlan {
    pub(super) fn prepare(call: &'static str, device: &CudaDevice, operation: &FftOperation) -> Result<Self> {
        let api = FftApi::load(call)?;
        let mut plan = 0;
        // SAFETY: the out-parameter is a live local, and the context is current.
        let created = check("cufftCreate", unsafe { (api.create)(&mut plan) });
        created.map_err(|failure| failure.error(call, FftOperation::NAME))?;
        let context = device.context.clone();
        let mut made =
            Self { operation: *operation, api, plan, workspace_bytes: 0, context, turn: Mutex::new(()) };
        made.make().map_err(|failure| failure.error(call, &operation.to_string()))?;
        Ok(made)
    }

    fn make(&mut self) -> FftResult<()> {
        let operation = &self.operation;
        let long = |size: u64| c_longlong::try_from(size).unwrap_or(c_longlong::MAX);
        let mut sizes: Vec<c_longlong> =
            operation.shape.extents().iter().map(|extent| long(*extent)).collect();
        let (rank, rows) = (sizes.len() as c_int, operation.shape.rows());
        // The rows of both arrays as they are stored, with the elements that only make room.
        let stored = |row: u64| {
            let mut stored = sizes.clone();
            stored.iter_mut().last().into_iter().for_each(|last| *last = long(row));
            (stored, long(rows.saturating_mul(row)))
        };
        let (mut real, mut spectrum) = (stored(operation.real_row()), stored(operation.spectrum_row()));
        let mut other = spectrum.clone();
        let (input, output) = match operation.kind {
            FftKind::Forward | FftKind::Inverse => (&mut spectrum, &mut other),
            FftKind::RealForward => (&mut real, &mut spectrum),
            FftKind::RealInverse => (&mut spectrum, &mut real),
        };
        // SAFETY: the plan was created and is not made yet.
        check("cufftSetAutoAllocation", unsafe { (self.api.set_auto_allocation)(self.plan, 0) })?;
        // SAFETY: each list has as many sizes as the rank says, and the out-parameter is a live field.
        let status = unsafe {
            (self.api.make)(
                self.plan,
                rank,
                sizes.as_mut_ptr(),
                input.0.as_mut_ptr(),
                1,
                input.1,
                output.0.as_mut_ptr(),
                1,
                output.1,
                library_enums::fft_type(operation.kind, operation.element),
                long(operation.batch),
                &mut self.workspace_bytes,
            )
        };
        check("cufftMakePlanMany64", status)
    }
}

impl PreparedOperation for FftPlan {
    fn workspace_bytes(&self) -> u64 {
        self.workspace_bytes as u64
    }

    unsafe fn queue(&self, stream: sys::CUstream, arguments: &OperationArguments<'_>) -> FftResult<()> {
        let (api, plan) = (self.api, self.plan);
        let (input, output) =
            (arguments.address(0), arguments.address(usize::from(!self.operation.in_place)));
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: here and below, the lock keeps others from the plan, and the caller vouches for stream and addresses.
        check("cufftSetStream", unsafe { (api.set_stream)(plan, stream) })?;
        if self.workspace_bytes > 0 {
            // SAFETY: as above.
            check("cufftSetWorkArea", unsafe { (api.set_work_area)(plan, arguments.workspace()) })?;
        }
        let is_single = self.operation.element == ElementType::F32;
        // SAFETY: as above.
        unsafe {
            match (self.operation.kind, is_single) {
                (FftKind::Forward, true) => check("cufftExecC2C", (api.c2c)(plan, input, output, FORWARD)),
                (FftKind::Forward, false) => check("cufftExecZ2Z", (api.z2z)(plan, input, output, FORWARD)),
                (FftKind::Inverse, true) => check("cufftExecC2C", (api.c2c)(plan, input, output, INVERSE)),
                (FftKind::Inverse, false) => check("cufftExecZ2Z", (api.z2z)(plan, input, output, INVERSE)),
                (FftKind::RealForward, true) => check("cufftExecR2C", (api.r2c)(plan, input, output)),
                (FftKind::RealForward, false) => check("cufftExecD2Z", (api.d2z)(plan, input, output)),
                (FftKind::RealInverse, true) => check("cufftExecC2R", (api.c2r)(plan, input, output)),
                (FftKind::RealInverse, false) => check("cufftExecZ2D", (api.z2d)(plan, input, output)),
            }
        }
    }
}

impl Drop for FftPlan {
    fn drop(&mut self) {
        let (api, plan) = (self.api, self.plan);
        // Destroying a plan frees device memory, which waits for the device.
        self.context.free_when_idle(move |_| {
            // SAFETY: this was the only owner.
            unsafe { (api.destroy)(plan) };
            0
        });
    }
}

fn check(call: &'static str, status: i32) -> FftResult<()> {
    LibraryFailure::check(LibraryKind::Cufft, call, status)
}
