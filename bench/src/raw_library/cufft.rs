//! Complex Fourier transforms by cuFFT.

use std::ffi::{c_int, c_longlong, c_void};
use std::ptr;

use cudarc::driver::sys;
use kiln_cuda::LibraryKind;

use super::{check, entry_points};
use crate::Failure;

type Data = *mut c_void;
type Sizes = *mut c_longlong;

entry_points! {
    FftApi of LibraryKind::Cufft => {
        create = "cufftCreate"(*mut c_int);
        destroy = "cufftDestroy"(c_int);
        make = "cufftMakePlanMany64"(
            c_int, c_int, Sizes, Sizes, c_longlong, c_longlong, Sizes, c_longlong, c_longlong, c_int, c_longlong,
            *mut usize,
        );
        set_stream = "cufftSetStream"(c_int, sys::CUstream);
        c2c = "cufftExecC2C"(c_int, Data, Data, c_int);
    }
}

/// `CUFFT_C2C`, and the sign of a forward transform.
const C2C: c_int = 0x29;
const FORWARD: c_int = -1;

/// A plan of forward transforms of `f32`, one array behind the other. The library allocates its work area.
pub(crate) struct FftPlan {
    api: FftApi,
    plan: c_int,
}

impl FftPlan {
    pub(crate) fn new(stream: sys::CUstream, n: usize, batch: usize) -> Result<Self, Failure> {
        let api = FftApi::load()?;
        let (mut plan, mut extent, mut work) = (0, n as c_longlong, 0);
        let (none, batch) = (ptr::null_mut(), batch as c_longlong);
        // SAFETY: out-parameters are live locals; without lists of stored sizes the arrays lie one behind the other.
        unsafe {
            check("cufftCreate", (api.create)(&mut plan))?;
            let made = (api.make)(plan, 1, &mut extent, none, 1, 0, none, 1, 0, C2C, batch, &mut work);
            check("cufftMakePlanMany64", made)?;
            check("cufftSetStream", (api.set_stream)(plan, stream))?;
        }
        Ok(Self { api, plan })
    }

    /// Queues a transform from one address to another on the stream of the plan.
    pub(crate) fn queue(&self, input: u64, output: u64) -> Result<(), Failure> {
        let [input, output] = [input, output].map(|address| ptr::without_provenance_mut(address as usize));
        // SAFETY: the plan was made, and the caller gives addresses of arrays that live until it has waited.
        check("cufftExecC2C", unsafe { (self.api.c2c)(self.plan, input, output, FORWARD) })
    }
}

impl Drop for FftPlan {
    fn drop(&mut self) {
        // SAFETY: this is the only owner, and the caller has waited for its stream.
        unsafe { (self.api.destroy)(self.plan) };
    }
}
