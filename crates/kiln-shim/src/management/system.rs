//! Initialisation, versions, and how many devices there are.

use std::ffi::{c_char, c_int, c_uint};
use std::sync::{Mutex, PoisonError};

use crate::caller_memory::Out;
use crate::calls::backend::API_VERSION;
use crate::calls::process_state::{self, ProcessState};
use crate::management::{Answer, Status, management_api, management_forms, set, set_text};

/// The branch of NVIDIA's driver that speaks this version of CUDA.
const DRIVER_VERSION: &str = "580.00";
const LIBRARY_VERSION: &str = "13.580.00";

/// How often it was initialised.
static INITIALIZED: Mutex<u64> = Mutex::new(0);

/// The devices, after `nvmlInit`.
pub(super) fn devices() -> Answer<&'static ProcessState> {
    if *INITIALIZED.lock().unwrap_or_else(PoisonError::into_inner) == 0 {
        return Err(Status::UNINITIALIZED);
    }
    process_state::machine().map_err(|_| Status::UNINITIALIZED)
}

fn initialize() -> Answer {
    let mut initialized = INITIALIZED.lock().unwrap_or_else(PoisonError::into_inner);
    process_state::machine().map_err(|_| Status::UNKNOWN)?;
    *initialized += 1;
    Ok(())
}

management_api! {
    fn nvmlInit_v2 | nvmlInit () {
        initialize()
    }

    fn nvmlInitWithFlags(_flags: c_uint) {
        initialize()
    }

    fn nvmlShutdown() {
        let mut initialized = INITIALIZED.lock().unwrap_or_else(PoisonError::into_inner);
        *initialized = initialized.checked_sub(1).ok_or(Status::UNINITIALIZED)?;
        Ok(())
    }

    fn nvmlSystemGetDriverVersion(out: Out<c_char>, room: c_uint) {
        devices()?;
        set_text(out, room, DRIVER_VERSION)
    }

    fn nvmlSystemGetNVMLVersion(out: Out<c_char>, room: c_uint) {
        devices()?;
        set_text(out, room, LIBRARY_VERSION)
    }

    fn nvmlSystemGetCudaDriverVersion | nvmlSystemGetCudaDriverVersion_v2 (out: Out<c_int>) {
        // It is there before the initialisation, too.
        set(out, (API_VERSION.major * 1000 + API_VERSION.minor * 10) as c_int)
    }

    fn nvmlSystemGetProcessName(process: c_uint, out: Out<c_char>, room: c_uint) {
        devices()?;
        let name = std::fs::read(format!("/proc/{process}/cmdline")).map_err(|_| Status::NOT_FOUND)?;
        let name = String::from_utf8_lossy(name.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned();
        set_text(out, room, &name)
    }

    fn nvmlDeviceGetCount_v2 | nvmlDeviceGetCount (out: Out<c_uint>) {
        set(out, devices()?.devices.len() as c_uint)
    }
}
