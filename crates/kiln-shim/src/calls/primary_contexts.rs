//! The primary context of each device.

use std::ffi::{c_int, c_uint};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use kiln_driver::Code;

use crate::caller_memory::Out;
use crate::calls::contexts::check_flags;
use crate::calls::process_state::state;
use crate::handle_table::RawHandle;

driver_api! {
    fn cuDevicePrimaryCtxRetain(out: Out<RawHandle>, device: c_int) {
        let device = state()?.device(device)?;
        out.check()?;
        let mut retained = device.retained.lock().unwrap_or_else(PoisonError::into_inner);
        device.primary.begin()?;
        *retained += 1;
        out.set(device.primary_handle)
    }

    fn cuDevicePrimaryCtxRelease_v2(device: c_int) = cuDevicePrimaryCtxRelease {
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

    fn cuDevicePrimaryCtxReset_v2(device: c_int) = cuDevicePrimaryCtxReset {
        let state = state()?;
        let device = state.device(device)?;
        let _retained = device.retained.lock().unwrap_or_else(PoisonError::into_inner);
        // The next who retains it finds it usable again.
        device.primary.end(state);
        Ok(())
    }

    fn cuDevicePrimaryCtxGetState(device: c_int, flags: Out<c_uint>, active: Out<c_int>) {
        let device = state()?.device(device)?;
        flags.check()?;
        active.set(c_int::from(device.primary.is_there()))?;
        flags.set(device.primary.flags.load(Ordering::Relaxed))
    }

    fn cuDevicePrimaryCtxSetFlags_v2(device: c_int, flags: c_uint) = cuDevicePrimaryCtxSetFlags {
        let device = state()?.device(device)?;
        check_flags(flags)?;
        device.primary.flags.store(flags, Ordering::Relaxed);
        Ok(())
    }
}
