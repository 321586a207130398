//! The attributes of a device.

use std::ffi::c_int;

use cudarc::driver::sys::CUdevice_attribute as A;
use kiln_driver::{Code, DeviceInfo};

use crate::boundary::Answer;
use crate::calls::backend::Backend;

/// The largest number that is an attribute; those that are not in the list are 0.
const LAST: c_int = 147;

type Value = fn(&DeviceInfo) -> i64;

/// What a device answers whose driver cannot be asked.
const ATTRIBUTES: &[(A, Value)] = &[
    (A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, |info| info.limits.max_threads_per_block.into()),
    (A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, |info| info.limits.max_block.x.into()),
    (A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, |info| info.limits.max_block.y.into()),
    (A::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, |info| info.limits.max_block.z.into()),
    (A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, |info| info.limits.max_grid.x.into()),
    (A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, |info| info.limits.max_grid.y.into()),
    (A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, |info| info.limits.max_grid.z.into()),
    (A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, |info| info.limits.shared_bytes_per_block.into()),
    (A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, |info| {
        info.limits.shared_bytes_per_block_optin.into()
    }),
    (A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, |info| {
        info.limits.shared_bytes_per_multiprocessor.into()
    }),
    (A::CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, |_| 1024),
    (A::CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, |info| info.limits.constant_bytes.into()),
    (A::CU_DEVICE_ATTRIBUTE_WARP_SIZE, |info| info.limits.warp_threads.into()),
    (A::CU_DEVICE_ATTRIBUTE_MAX_PITCH, |_| i32::MAX.into()),
    (A::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, |info| info.limits.max_registers_per_block.into()),
    (A::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, |info| {
        info.limits.max_registers_per_block.into()
    }),
    (A::CU_DEVICE_ATTRIBUTE_CLOCK_RATE, |_| 1_000_000),
    (A::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, |_| 1_000_000),
    (A::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, |_| 4096),
    (A::CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, |_| 512),
    (A::CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, |_| 32),
    (A::CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT, |_| 512),
    (A::CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, |_| 1),
    (A::CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, |_| 3),
    (A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, |info| info.limits.multiprocessors.into()),
    (A::CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, |_| 1),
    (A::CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, |info| info.features.concurrent_kernels.into()),
    (A::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, |info| info.pci.bus.into()),
    (A::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, |info| info.pci.device.into()),
    (A::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, |info| info.pci.domain.into()),
    (A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, |info| info.limits.l2_bytes as i64),
    (A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, |info| {
        info.limits.max_threads_per_multiprocessor.into()
    }),
    (A::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, |info| {
        info.limits.max_blocks_per_multiprocessor.into()
    }),
    (A::CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, |_| 1),
    (A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, |info| info.capability.major.into()),
    (A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, |info| info.capability.minor.into()),
    (A::CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, |info| {
        (info.limits.priorities.lowest != info.limits.priorities.highest).into()
    }),
    (A::CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, |_| 1),
    (A::CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, |_| 1),
    (A::CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, |_| 1),
    (A::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, |_| 1),
    (A::CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, |_| 2),
    (A::CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, |_| 1),
    (A::CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, |_| 1),
    (A::CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR, |_| 1),
    (A::CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, |_| 1),
    (A::CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, |info| info.features.cooperative_launch.into()),
    (A::CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, |info| info.features.host_registration.into()),
    (A::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, |info| info.features.memory_pool.into()),
    (A::CU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED, |info| info.features.pages.into()),
    (A::CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, |info| {
        info.features.page_export.into()
    }),
    (A::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, |info| info.features.cluster_launch.into()),
];

/// Attributes of what only the simulated device has here.
const SIMULATED_ALONE: [A; 6] = [
    A::CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED,
    A::CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS,
    A::CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR,
    A::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS,
    A::CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED,
    A::CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED,
];

/// The value of an attribute.
pub(crate) fn attribute(backend: &Backend, info: &DeviceInfo, number: c_int) -> Answer<c_int> {
    if !(1..=LAST).contains(&number) {
        return Err(Code::INVALID_VALUE);
    }
    if !backend.is_simulated() && SIMULATED_ALONE.iter().any(|attribute| *attribute as c_int == number) {
        return Ok(0);
    }
    if number == A::CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM as c_int {
        return Ok(backend.reaches_registered_memory(info.ordinal).into());
    }
    if let Some(value) = backend.attribute(info.ordinal, number) {
        return Ok(value);
    }
    let value = ATTRIBUTES.iter().find(|(attribute, _)| *attribute as c_int == number);
    let value = value.map_or(0, |(_, value)| value(info));
    Ok(c_int::try_from(value).unwrap_or(c_int::MAX))
}
