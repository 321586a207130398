//! Figures of a device: memory, processes, and those that a simulated device does not have.

use std::ffi::c_uint;

use kiln_driver::MemoryInfo;

use crate::caller_memory::Out;
use crate::calls::process_state::Device;
use crate::handle_table::RawHandle;
use crate::management::device_handles::{device, info};
use crate::management::system::devices;
use crate::management::{Answer, Status, management_api, management_forms, set};

/// The structure `nvmlMemory_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Memory {
    total: u64,
    free: u64,
    used: u64,
}

/// The structure `nvmlMemory_v2_t`, and the version that says so.
#[repr(C)]
#[derive(Clone, Copy)]
struct MemoryWithVersion {
    version: c_uint,
    total: u64,
    reserved: u64,
    free: u64,
    used: u64,
}

const MEMORY_VERSION: c_uint = size_of::<MemoryWithVersion>() as c_uint | 2 << 24;

/// The structure `nvmlUtilization_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Utilization {
    device: c_uint,
    memory: c_uint,
}

/// The structure `nvmlProcessInfo_v1_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct OldProcess {
    process: c_uint,
    used: u64,
}

/// The structure `nvmlProcessInfo_t`; a device that is not divided has instances of all ones.
#[repr(C)]
#[derive(Clone, Copy)]
struct Process {
    process: c_uint,
    used: u64,
    device_instance: c_uint,
    compute_instance: c_uint,
}

fn memory(device: &Device) -> Answer<MemoryInfo> {
    device.driver.memory_info().map_err(|_| Status::GPU_IS_LOST)
}

/// Lists this process if it has a context on the device: each process has separate devices.
fn processes<T: Copy>(
    handle: RawHandle,
    count: Out<c_uint>,
    out: Out<T>,
    of: impl Fn(c_uint, u64) -> T,
) -> Answer {
    let (index, device) = device(handle)?;
    let room = count.get().map_err(|_| Status::INVALID_ARGUMENT)?;
    let contexts = devices()?.contexts.objects();
    if !contexts.iter().any(|context| context.device as usize == index && context.is_there()) {
        return set(count, 0);
    }
    set(count, 1)?;
    if room == 0 {
        return Err(Status::INSUFFICIENT_SIZE);
    }
    let memory = memory(device)?;
    set(out, of(std::process::id(), memory.total_bytes - memory.free_bytes))
}

/// What a simulated device does not have.
fn unsupported(handle: RawHandle) -> Answer {
    info(handle)?;
    Err(Status::NOT_SUPPORTED)
}

management_api! {
    fn nvmlDeviceGetMemoryInfo(handle: RawHandle, out: Out<Memory>) {
        let MemoryInfo { free_bytes: free, total_bytes: total } = memory(device(handle)?.1)?;
        set(out, Memory { total, free, used: total - free })
    }

    fn nvmlDeviceGetMemoryInfo_v2(handle: RawHandle, out: Out<MemoryWithVersion>) {
        let device = device(handle)?.1;
        let version = out.get().map_err(|_| Status::INVALID_ARGUMENT)?.version;
        if version != MEMORY_VERSION {
            return Err(Status::ARGUMENT_VERSION_MISMATCH);
        }
        let MemoryInfo { free_bytes: free, total_bytes: total } = memory(device)?;
        set(out, MemoryWithVersion { version, total, reserved: 0, free, used: total - free })
    }

    fn nvmlDeviceGetUtilizationRates(handle: RawHandle, out: Out<Utilization>) {
        info(handle)?;
        // Work runs while the program waits for it, so that a device is never seen at work.
        set(out, Utilization { device: 0, memory: 0 })
    }

    fn nvmlDeviceGetComputeRunningProcesses(handle: RawHandle, count: Out<c_uint>, out: Out<OldProcess>) {
        processes(handle, count, out, |process, used| OldProcess { process, used })
    }

    fn nvmlDeviceGetComputeRunningProcesses_v3 | nvmlDeviceGetComputeRunningProcesses_v2 (
        handle: RawHandle, count: Out<c_uint>, out: Out<Process>
    ) {
        processes(handle, count, out, |process, used| Process {
            process,
            used,
            device_instance: c_uint::MAX,
            compute_instance: c_uint::MAX,
        })
    }

    fn nvmlDeviceGetGraphicsRunningProcesses | nvmlDeviceGetGraphicsRunningProcesses_v2 | nvmlDeviceGetGraphicsRunningProcesses_v3 (
        handle: RawHandle, count: Out<c_uint>, _out: usize
    ) {
        info(handle)?;
        set(count, 0)
    }

    fn nvmlDeviceGetTemperature(handle: RawHandle, _sensor: c_uint, _out: usize) {
        unsupported(handle)
    }

    fn nvmlDeviceGetPowerUsage | nvmlDeviceGetEnforcedPowerLimit | nvmlDeviceGetPowerManagementLimit
        | nvmlDeviceGetFanSpeed | nvmlDeviceGetPerformanceState | nvmlDeviceGetPersistenceMode
        | nvmlDeviceGetTotalEnergyConsumption (handle: RawHandle, _out: usize) {
        unsupported(handle)
    }

    fn nvmlDeviceGetClockInfo | nvmlDeviceGetMaxClockInfo (handle: RawHandle, _kind: c_uint, _out: usize) {
        unsupported(handle)
    }

    fn nvmlDeviceGetMigMode | nvmlDeviceGetEccMode (handle: RawHandle, _current: usize, _pending: usize) {
        unsupported(handle)
    }

    fn nvmlDeviceGetSerial | nvmlDeviceGetVbiosVersion (handle: RawHandle, _out: usize, _room: c_uint) {
        unsupported(handle)
    }
}
