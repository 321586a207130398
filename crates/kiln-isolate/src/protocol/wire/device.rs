//! Encodes the description of a device and other plain values of the `Driver` trait.

use std::time::Duration;

use kiln_driver::{
    Capability, DeviceAddress, DeviceInfo, DeviceKey, DeviceKind, Dim3, Features, FunctionAttributes, Limits,
    MemoryInfo, Occupancy, ParameterSpan, PciId, Priorities, Protection, Uuid, Version,
};

use super::reader::{Malformed, Reader};
use super::writer::{Put, Take, Writer, in_order};

in_order! {
    Dim3 { x, y, z }
    Capability { major, minor }
    Version { major, minor }
    PciId { domain, bus, device }
    Priorities { lowest, highest }
    MemoryInfo { free_bytes, total_bytes }
    Occupancy { blocks_per_multiprocessor, suggested_block_threads, suggested_grid_blocks }
    ParameterSpan { offset, bytes }
    FunctionAttributes {
        max_threads_per_block, registers, static_shared_bytes, local_bytes, constant_bytes, workspace_bytes, parameters,
    }
    Limits {
        max_grid, max_block, max_threads_per_block, max_cluster_blocks, warp_threads, multiprocessors,
        max_threads_per_multiprocessor, max_blocks_per_multiprocessor, max_registers_per_block,
        shared_bytes_per_block, shared_bytes_per_block_optin, shared_bytes_per_multiprocessor, constant_bytes,
        max_argument_bytes, l2_bytes, allocation_alignment_bytes, page_granularity_bytes, priorities,
    }
    Features {
        pages, page_export, memory_pool, host_registration, cooperative_launch, cluster_launch,
        concurrent_kernels, ptx, cubin, host_kernels, native_handles, access_checks,
    }
}

impl Put for DeviceAddress {
    fn put(&self, to: &mut Writer) {
        to.u64(self.0);
    }
}

impl Take for DeviceAddress {
    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        from.u64().map(Self)
    }
}

impl Put for Protection {
    fn put(&self, to: &mut Writer) {
        to.u8(match self {
            Self::Read => 0,
            Self::ReadWrite => 1,
        });
    }
}

impl Take for Protection {
    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(if bool::take(from)? { Self::ReadWrite } else { Self::Read })
    }
}

impl Put for Duration {
    fn put(&self, to: &mut Writer) {
        to.u64(u64::try_from(self.as_nanos()).unwrap_or(u64::MAX));
    }
}

impl Take for Duration {
    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        from.u64().map(Self::from_nanos)
    }
}

/// Without the key, which is valid in one process only.
impl Put for DeviceInfo {
    fn put(&self, to: &mut Writer) {
        self.ordinal.put(to);
        to.u8(match self.kind {
            DeviceKind::Cuda => 0,
            DeviceKind::Simulated => 1,
        });
        to.text(&self.name, 1024);
        to.slice(&self.uuid.0);
        self.pci.put(to);
        self.capability.put(to);
        self.driver_version.put(to);
        self.total_memory_bytes.put(to);
        self.mig.put(to);
        self.limits.put(to);
        self.features.put(to);
    }
}

/// With a new key of this process.
impl Take for DeviceInfo {
    fn take(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            key: DeviceKey::fresh(),
            ordinal: from.u32()?,
            kind: match from.u8()? {
                0 => DeviceKind::Cuda,
                1 => DeviceKind::Simulated,
                _ => return Err(Malformed { what: "an unknown kind of device" }),
            },
            name: String::take(from)?,
            uuid: Uuid(from.slice()?.try_into().map_err(|_| Malformed { what: "a UUID of another length" })?),
            pci: Take::take(from)?,
            capability: Take::take(from)?,
            driver_version: Take::take(from)?,
            total_memory_bytes: Take::take(from)?,
            mig: Take::take(from)?,
            limits: Take::take(from)?,
            features: Take::take(from)?,
        })
    }
}
