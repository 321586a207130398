//! Devices: how many, which, and what they are.

use std::ffi::{c_char, c_int, c_uint};

use cudarc::driver::sys;
use kiln_driver::{Code, PciId};

use crate::boundary::Answer;
use crate::caller_memory::{Out, Text, store_text};
use crate::calls::device_attributes::attribute;
use crate::calls::process_state::state;

/// The structure `CUdevprop`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Properties {
    max_threads_per_block: c_int,
    max_block: [c_int; 3],
    max_grid: [c_int; 3],
    shared_bytes_per_block: c_int,
    constant_bytes: c_int,
    warp_threads: c_int,
    max_pitch: c_int,
    registers_per_block: c_int,
    clock_kilohertz: c_int,
    texture_alignment: c_int,
}

const _: () = assert!(size_of::<Properties>() == size_of::<sys::CUdevprop>());

fn uuid(out: Out<[u8; 16]>, device: c_int) -> Answer {
    out.set(state()?.device(device)?.driver.info().uuid.0)
}

fn attribute_of(device: c_int, number: sys::CUdevice_attribute) -> Answer<c_int> {
    let state = state()?;
    attribute(&state.backend, state.device(device)?.driver.info(), number as c_int)
}

/// Whether a text has the form of a place on the bus: `domain:bus:device.function`, with or without domain and function.
fn is_bus_id(text: &str) -> bool {
    let (place, function) = text.split_once('.').unwrap_or((text, "0"));
    let is_hexadecimal = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    (2..=3).contains(&place.split(':').count())
        && place.split(':').all(is_hexadecimal)
        && is_hexadecimal(function)
}

driver_api! {
    fn cuDeviceGetCount(count: Out<c_int>) {
        count.set(state()?.devices.len() as c_int)
    }

    fn cuDeviceGet(device: Out<c_int>, ordinal: c_int) {
        let state = state()?;
        device.check()?;
        state.device(ordinal)?;
        device.set(ordinal)
    }

    fn cuDeviceGetName(name: Out<c_char>, room: c_int, device: c_int) {
        let device = state()?.device(device)?;
        let room = usize::try_from(room).map_err(|_| Code::INVALID_VALUE)?;
        store_text(name, room, &device.driver.info().name)
    }

    fn cuDeviceGetUuid(out: Out<[u8; 16]>, device: c_int) {
        uuid(out, device)
    }

    fn cuDeviceGetUuid_v2(out: Out<[u8; 16]>, device: c_int) {
        uuid(out, device)
    }

    fn cuDeviceTotalMem_v2(bytes: Out<usize>, device: c_int) {
        bytes.set(state()?.device(device)?.driver.info().total_memory_bytes as usize)
    }

    fn cuDeviceGetAttribute(value: Out<c_int>, number: c_int, device: c_int) {
        let state = state()?;
        let info = state.device(device)?.driver.info();
        value.check()?;
        value.set(attribute(&state.backend, info, number)?)
    }

    fn cuDeviceComputeCapability(major: Out<c_int>, minor: Out<c_int>, device: c_int) {
        let capability = state()?.device(device)?.driver.info().capability;
        major.set(capability.major as c_int)?;
        minor.set(capability.minor as c_int)
    }

    fn cuDeviceGetProperties(out: Out<Properties>, device: c_int) {
        use sys::CUdevice_attribute as A;
        let of = |number: A| attribute_of(device, number);
        out.set(Properties {
            max_threads_per_block: of(A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            max_block: [
                of(A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X)?,
                of(A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y)?,
                of(A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)?,
            ],
            max_grid: [
                of(A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)?,
                of(A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)?,
                of(A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)?,
            ],
            shared_bytes_per_block: of(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)?,
            constant_bytes: of(A::CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY)?,
            warp_threads: of(A::CU_DEVICE_ATTRIBUTE_WARP_SIZE)?,
            max_pitch: of(A::CU_DEVICE_ATTRIBUTE_MAX_PITCH)?,
            registers_per_block: of(A::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK)?,
            clock_kilohertz: of(A::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?,
            texture_alignment: of(A::CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT)?,
        })
    }

    fn cuDeviceGetPCIBusId(out: Out<c_char>, room: c_int, device: c_int) {
        let device = state()?.device(device)?;
        let room = usize::try_from(room).map_err(|_| Code::INVALID_VALUE)?;
        store_text(out, room, &bus_id(device.driver.info().pci))
    }

    fn cuDeviceGetByPCIBusId(out: Out<c_int>, id: Text) {
        let state = state()?;
        out.check()?;
        let wanted = id.get()?.to_lowercase();
        if !is_bus_id(&wanted) {
            return Err(Code::INVALID_VALUE);
        }
        let found = state.devices.iter().position(|device| bus_id(device.driver.info().pci) == wanted);
        out.set(found.ok_or(Code::INVALID_DEVICE)? as c_int)
    }

    fn cuDeviceGetExecAffinitySupport(out: Out<c_int>, _kind: c_uint, device: c_int) {
        state()?.device(device)?;
        out.set(0)
    }
}

fn bus_id(pci: PciId) -> String {
    format!("{:04x}:{:02x}:{:02x}.0", pci.domain, pci.bus, pci.device)
}
