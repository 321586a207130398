//! The primary context of each device.

use std::ffi::{c_int, c_uint};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use cudarc::driver::sys;
use kiln_driver::Code;

use crate::caller_memory::Out;
use crate::calls::process_state::state;
use crate::handle_table::RawHandle;

const ALL_FLAGS: u32 = sys::CUctx_flags::CU_CTX_FLAGS_MASK as u32;

driver_api! {
    fn cuDevicePrimaryCtxRetain(out: Out<RawHandle>, device: c_int) {
        let device = state()?.device(device)?;
        out.check()?;
        let mut retained = device.retained.lock().unwrap_or_else(PoisonError::into_inner);
        device.primary.begin()?;
        *retained += 1;
        out.set(device.primary_handle)
    }

    fn cuDevicePrimaryCtxRelease_v2(device: c_int) {
        let state = state()?;
        let device = state.device(device)?;
        let mut retained = device.retained.lock().unwrap_or_else(PoisonError::into_inner);
        if *retained == 0 {
            return Err(Code::INVALID_CONTEXT);
        }
        *retained -= 1;
        if *retained == 0 {
            device.primary.end(state);
        }
        Ok(())
    }

    fn cuDevicePrimaryCtxReset_v2(device: c_int) {
        let state = state()?;
        let device = state.device(device)?;
        let retained = device.retained.lock().unwrap_or_else(PoisonError::into_inner);
        device.primary.end(state);
        // Those who retain it find it usable again.
        if *retained > 0 { device.primary.begin() } else { Ok(()) }
    }

    fn cuDevicePrimaryCtxGetState(device: c_int, flags: Out<c_uint>, active: Out<c_int>) {
        let device = state()?.device(device)?;
        flags.set_if_wanted(device.primary.flags.load(Ordering::Relaxed));
        active.set_if_wanted(c_int::from(device.primary.is_there()));
        Ok(())
    }

    fn cuDevicePrimaryCtxSetFlags_v2(device: c_int, flags: c_uint) {
        let device = state()?.device(device)?;
        if flags & !ALL_FLAGS != 0 {
            return Err(Code::INVALID_VALUE);
        }
        device.primary.flags.store(flags, Ordering::Relaxed);
        Ok(())
    }
}
