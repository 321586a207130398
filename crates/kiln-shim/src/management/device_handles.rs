//! Devices: found by number, UUID or place on the bus, and what identifies them.

use std::ffi::{c_char, c_int, c_uint};

use kiln_driver::{DeviceInfo, PciId};

use crate::caller_memory::{Out, Text, store_text};
use crate::calls::process_state::Device;
use crate::handle_table::RawHandle;
use crate::management::system::devices;
use crate::management::{Answer, Status, management_api, management_forms, set, set_text};

/// Marks a number as a handle of a device; it points nowhere.
const MARK: usize = 0x4e << 56;
const SHIFT: u32 = 4;

/// The structure `nvmlPciInfo_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct PciInfo {
    legacy_id: [c_char; 16],
    domain: c_uint,
    bus: c_uint,
    device: c_uint,
    device_id: c_uint,
    subsystem_id: c_uint,
    id: [c_char; 32],
}

/// What it was before.
#[repr(C)]
#[derive(Clone, Copy)]
struct OldPciInfo {
    legacy_id: [c_char; 16],
    domain: c_uint,
    bus: c_uint,
    device: c_uint,
    device_id: c_uint,
    subsystem_id: c_uint,
    reserved: [c_uint; 4],
}

fn handle(index: usize) -> RawHandle {
    MARK | (index + 1) << SHIFT
}

/// The device of a handle, with its number.
pub(super) fn device(handle: RawHandle) -> Answer<(usize, &'static Device)> {
    let devices = &devices()?.devices;
    let index = (handle & !MARK) >> SHIFT;
    let index = index.checked_sub(1).filter(|index| self::handle(*index) == handle);
    let index = index.ok_or(Status::INVALID_ARGUMENT)?;
    Ok((index, devices.get(index).ok_or(Status::INVALID_ARGUMENT)?))
}

/// What identifies it.
pub(super) fn info(handle: RawHandle) -> Answer<&'static DeviceInfo> {
    Ok(device(handle)?.1.driver.info())
}

/// The first device that is meant.
fn find(out: Out<RawHandle>, is_meant: impl Fn(&DeviceInfo) -> bool) -> Answer {
    let found = devices()?.devices.iter().position(|device| is_meant(device.driver.info()));
    set(out, handle(found.ok_or(Status::NOT_FOUND)?))
}

fn given(text: Text) -> Answer<String> {
    text.get().map_err(|_| Status::INVALID_ARGUMENT)
}

/// The place that a text names: `domain:bus:device.function`, with or without domain and function.
fn place(text: &str) -> Option<(u32, u32, u32)> {
    let (place, function) = text.split_once('.').unwrap_or((text, "0"));
    let mut parts = place.split(':').map(|part| u32::from_str_radix(part, 16));
    let mut parts = [parts.next(), parts.next(), parts.next(), parts.next()];
    if u32::from_str_radix(function, 16).is_err() {
        return None;
    }
    if parts[2].is_none() {
        parts.rotate_right(1);
        parts[0] = Some(Ok(0));
    }
    match parts {
        [Some(Ok(domain)), Some(Ok(bus)), Some(Ok(device)), None] => Some((domain, bus, device)),
        _ => None,
    }
}

/// A text in a field.
fn field<const ROOM: usize>(text: &str) -> [c_char; ROOM] {
    let mut field = [0; ROOM];
    // It is shorter than the field.
    let _ = store_text(Out::at(field.as_mut_ptr().cast()), ROOM, text);
    field
}

fn ids(pci: &PciId) -> (String, String) {
    let rest = format!("{:02X}:{:02X}.0", pci.bus, pci.device);
    (format!("{:04X}:{rest}", pci.domain), format!("{:08X}:{rest}", pci.domain))
}

fn old_pci_info(handle: RawHandle, out: Out<OldPciInfo>) -> Answer {
    let pci = &info(handle)?.pci;
    let (domain, bus, device) = (pci.domain, pci.bus, pci.device);
    let legacy_id = field(&ids(pci).0);
    set(out, OldPciInfo { legacy_id, domain, bus, device, device_id: 0, subsystem_id: 0, reserved: [0; 4] })
}

management_api! {
    fn nvmlDeviceGetHandleByIndex_v2 | nvmlDeviceGetHandleByIndex (index: c_uint, out: Out<RawHandle>) {
        if index as usize >= devices()?.devices.len() {
            return Err(Status::INVALID_ARGUMENT);
        }
        set(out, handle(index as usize))
    }

    fn nvmlDeviceGetHandleByUUID(uuid: Text, out: Out<RawHandle>) {
        let uuid = given(uuid)?;
        find(out, |info| info.uuid.to_string() == uuid)
    }

    fn nvmlDeviceGetHandleByPciBusId_v2 | nvmlDeviceGetHandleByPciBusId (id: Text, out: Out<RawHandle>) {
        devices()?;
        let wanted = place(&given(id)?).ok_or(Status::INVALID_ARGUMENT)?;
        find(out, |info| (info.pci.domain, info.pci.bus, info.pci.device) == wanted)
    }

    fn nvmlDeviceGetIndex | nvmlDeviceGetMinorNumber (handle: RawHandle, out: Out<c_uint>) {
        set(out, device(handle)?.0 as c_uint)
    }

    fn nvmlDeviceGetName(handle: RawHandle, out: Out<c_char>, room: c_uint) {
        set_text(out, room, &info(handle)?.name)
    }

    fn nvmlDeviceGetUUID(handle: RawHandle, out: Out<c_char>, room: c_uint) {
        set_text(out, room, &info(handle)?.uuid.to_string())
    }

    fn nvmlDeviceGetCudaComputeCapability(handle: RawHandle, major: Out<c_int>, minor: Out<c_int>) {
        let capability = info(handle)?.capability;
        minor.check().map_err(|_| Status::INVALID_ARGUMENT)?;
        set(major, capability.major as c_int)?;
        set(minor, capability.minor as c_int)
    }

    fn nvmlDeviceGetBrand(handle: RawHandle, out: Out<c_uint>) {
        info(handle)?;
        // No brand that NVML knows.
        set(out, 0)
    }

    fn nvmlDeviceGetPciInfo_v3(handle: RawHandle, out: Out<PciInfo>) {
        let pci = &info(handle)?.pci;
        let (legacy, whole) = ids(pci);
        set(out, PciInfo {
            legacy_id: field(&legacy),
            domain: pci.domain,
            bus: pci.bus,
            device: pci.device,
            device_id: 0,
            subsystem_id: 0,
            id: field(&whole),
        })
    }

    fn nvmlDeviceGetPciInfo_v2 | nvmlDeviceGetPciInfo (handle: RawHandle, out: Out<OldPciInfo>) {
        old_pci_info(handle, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_two_or_three_numbers() {
        assert_eq!(place("0000:0A:00.0"), Some((0, 10, 0)));
        assert_eq!(place("00000001:02:03"), Some((1, 2, 3)));
        assert_eq!(place("02:03.0"), Some((0, 2, 3)));
        for wrong in ["", "7", "a:b:c:d", "0:x:0", "0:1:2.y"] {
            assert_eq!(place(wrong), None, "{wrong}");
        }
    }
}
