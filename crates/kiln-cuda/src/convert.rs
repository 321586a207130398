//! Every conversion between kiln's types and CUDA's.

use std::ffi::{c_int, c_uint};

use cudarc::driver::sys;
use kiln_driver::{Code, Error, LaunchCommand, Protection, Refusal};

use crate::cuda_absence::{DriverAbsence, StartFault, Unavailable};

/// Which page granularity is asked for: the one sizes must be a multiple of.
pub(crate) const MINIMUM_GRANULARITY: c_uint =
    sys::CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_MINIMUM as c_uint;
/// Pages that can be exported as a file descriptor.
pub(crate) const DESCRIPTOR: c_uint =
    sys::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR.0;
/// How much an unused pool keeps.
pub(crate) const POOL_RELEASE_THRESHOLD: c_uint =
    sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD as c_uint;
/// Host memory that every context of the process takes as pinned.
pub(crate) const PORTABLE_HOST: c_uint = sys::CU_MEMHOSTALLOC_PORTABLE;
/// The same for memory that is registered.
pub(crate) const PORTABLE_REGISTRATION: c_uint = sys::CU_MEMHOSTREGISTER_PORTABLE;
/// A stream that does not wait for the legacy default stream.
pub(crate) const NON_BLOCKING: c_uint = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as c_uint;
/// An event for order only.
pub(crate) const UNTIMED: c_uint = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as c_uint;
/// An event that takes the time.
pub(crate) const TIMED: c_uint = sys::CUevent_flags::CU_EVENT_DEFAULT as c_uint;

/// CUDA's code for memory that is registered already, which kiln's table has no name for.
pub(crate) const HOST_MEMORY_ALREADY_REGISTERED: Code = Code(712);

/// What the first calls into a library say about the machine.
pub(crate) fn start_refusal(library: &str, call: &'static str, code: Code) -> Unavailable {
    match code {
        Code::STUB_LIBRARY => DriverAbsence::Stub { library: library.into() }.into(),
        Code::NO_DEVICE => DriverAbsence::NoDevice.into(),
        Code::SYSTEM_DRIVER_MISMATCH | Code::COMPAT_NOT_SUPPORTED_ON_DEVICE => {
            DriverAbsence::Mismatched { code }.into()
        }
        code => StartFault { call, code }.into(),
    }
}

/// The error for a code that leaves the device usable.
pub(crate) fn refusal(call: &'static str, code: Code) -> Error {
    match code {
        Code::OUT_OF_MEMORY => Error::out_of_memory(call, 0, None),
        Code::NOT_SUPPORTED => Error::unsupported(call, "this call", code.to_string()),
        code => Error::refused(call, Refusal::Driver(code)),
    }
}

/// The error for a device that was opened before a fork.
pub(crate) fn forked(call: &'static str) -> Error {
    Error::unsupported(
        call,
        "a device that was opened before fork",
        "CUDA does not survive it; start the child with exec and open the device there",
    )
}

/// Bytes up to the first zero, as text.
pub(crate) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// Pages on a device.
pub(crate) fn page_properties(device: sys::CUdevice, exportable: bool) -> sys::CUmemAllocationProp {
    let handles = if exportable {
        sys::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
    } else {
        sys::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE
    };
    sys::CUmemAllocationProp {
        type_: sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        requestedHandleTypes: handles,
        location: location(device),
        win32HandleMetaData: std::ptr::null_mut(),
        allocFlags: sys::CUmemAllocationProp_st__bindgen_ty_1 {
            compressionType: 0,
            gpuDirectRDMACapable: 0,
            usage: 0,
            reserved: [0; 4],
        },
    }
}

/// A pool on a device whose memory stays in the process.
pub(crate) fn pool_properties(device: sys::CUdevice) -> sys::CUmemPoolProps {
    sys::CUmemPoolProps {
        allocType: sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        handleTypes: sys::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
        location: location(device),
        win32SecurityAttributes: std::ptr::null_mut(),
        maxSize: 0,
        reserved: [0; 56],
    }
}

/// What a device may do to a mapping.
pub(crate) fn access(device: sys::CUdevice, protection: Protection) -> sys::CUmemAccessDesc {
    let flags = match protection {
        Protection::Read => sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READ,
        Protection::ReadWrite => sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    };
    sys::CUmemAccessDesc { location: location(device), flags }
}

/// A launch with attributes, on a stream. The attributes must live where the pointer says until the call is made.
pub(crate) fn launch_config(
    launch: &LaunchCommand<'_>,
    stream: sys::CUstream,
    attributes: &mut [sys::CUlaunchAttribute],
) -> sys::CUlaunchConfig {
    sys::CUlaunchConfig {
        gridDimX: launch.grid.x,
        gridDimY: launch.grid.y,
        gridDimZ: launch.grid.z,
        blockDimX: launch.block.x,
        blockDimY: launch.block.y,
        blockDimZ: launch.block.z,
        sharedMemBytes: launch.dynamic_shared_bytes,
        hStream: stream,
        attrs: attributes.as_mut_ptr(),
        numAttrs: attributes.len() as c_uint,
    }
}

/// The attributes a launch needs; unused places say "ignore".
pub(crate) fn launch_attributes(launch: &LaunchCommand<'_>) -> [sys::CUlaunchAttribute; 2] {
    let mut attributes = [attribute(sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_IGNORE, empty_value()); 2];
    if launch.cooperative {
        attributes[0] =
            attribute(sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE, cooperative_value());
    }
    if let Some(value) = cluster_value(launch) {
        attributes[1] = attribute(sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, value);
    }
    attributes
}

/// The value that says a launch is cooperative.
pub(crate) fn cooperative_value() -> sys::CUlaunchAttributeValue {
    let mut value = empty_value();
    value.cooperative = 1;
    value
}

/// The value that gives the cluster of a launch, if it has one.
pub(crate) fn cluster_value(launch: &LaunchCommand<'_>) -> Option<sys::CUlaunchAttributeValue> {
    let cluster = launch.cluster?;
    let mut value = empty_value();
    value.clusterDim =
        sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x: cluster.x, y: cluster.y, z: cluster.z };
    Some(value)
}

/// A function attribute as a number.
pub(crate) fn function_attribute(attribute: sys::CUfunction_attribute) -> c_int {
    attribute as c_int
}

fn location(device: sys::CUdevice) -> sys::CUmemLocation {
    sys::CUmemLocation { type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id: device }
}

fn attribute(id: sys::CUlaunchAttributeID, value: sys::CUlaunchAttributeValue) -> sys::CUlaunchAttribute {
    sys::CUlaunchAttribute { id, pad: [0; 4], value }
}

fn empty_value() -> sys::CUlaunchAttributeValue {
    sys::CUlaunchAttributeValue { pad: [0; 64] }
}
