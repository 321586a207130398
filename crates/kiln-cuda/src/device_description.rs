//! The description of a device, read without opening it.
//!
//! The driver answers everything here without a context, so listing all devices uses no memory on them.

use std::ffi::{c_char, c_int};

use cudarc::driver::sys;
use kiln_driver::{
    Capability, DeviceInfo, DeviceKey, DeviceKind, Dim3, Features, Limits, PciId, Priorities, Uuid, Version,
};

use crate::convert;
use crate::cuda_absence::StartFault;
use crate::libcuda::{Libcuda, start_check};

use sys::CUdevice_attribute as Attribute;

const NAME_BYTES: usize = 256;

/// Kernels take this much since CUDA 12.1 on capability 7.0 and newer; there is no attribute to ask.
const MAX_ARGUMENT_BYTES: u32 = 32_764;
const MAX_ARGUMENT_BYTES_BEFORE_7_0: u32 = 4_096;

/// The cluster size every device with clusters runs; larger ones are a matter of each kernel.
const PORTABLE_CLUSTER_BLOCKS: u32 = 8;

/// The driver promises at least this for every allocation.
const ALLOCATION_ALIGNMENT_BYTES: u64 = 256;

/// A device of this machine, not opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceDescription {
    /// Its number; `CUDA_VISIBLE_DEVICES` decides which device has which.
    pub ordinal: u32,
    /// The name the vendor gave it.
    pub name: String,
    /// Its identity, the same after a reboot; that of the slice where it is one.
    pub uuid: Uuid,
    /// Its PCI address.
    pub pci: PciId,
    /// Compute capability.
    pub capability: Capability,
    /// The CUDA version that its driver supports.
    pub driver_version: Version,
    /// Device memory in bytes.
    pub total_memory_bytes: u64,
    /// Whether this is a slice of a device (MIG).
    pub mig: bool,
    /// Numbers a request is checked against. The stream priorities are known once the device is open; until then
    /// they say 0 to 0.
    pub limits: Limits,
    /// What it can do.
    pub features: Features,
}

impl DeviceDescription {
    /// Asks the driver about one device.
    pub(crate) fn read(library: &Libcuda, ordinal: u32) -> Result<Self, StartFault> {
        let asked = Asked::new(library, ordinal)?;
        let capability = Capability {
            major: asked.number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            minor: asked.number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        };
        let name = asked.name()?;
        let (uuid, sliced) = asked.uuid()?;
        let features = asked.features()?;
        Ok(Self {
            ordinal,
            mig: sliced || name.contains(" MIG "),
            name,
            uuid,
            pci: PciId {
                domain: asked.number(Attribute::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID)?,
                bus: asked.number(Attribute::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)?,
                device: asked.number(Attribute::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID)?,
            },
            capability,
            driver_version: library.version(),
            total_memory_bytes: asked.total_memory()?,
            limits: asked.limits(capability, &features)?,
            features,
        })
    }

    /// The same as it stands in an opened device.
    pub(crate) fn into_info(self, key: DeviceKey, priorities: Priorities) -> DeviceInfo {
        DeviceInfo {
            key,
            ordinal: self.ordinal,
            kind: DeviceKind::Cuda,
            name: self.name,
            uuid: self.uuid,
            pci: self.pci,
            capability: self.capability,
            driver_version: self.driver_version,
            total_memory_bytes: self.total_memory_bytes,
            mig: self.mig,
            limits: Limits { priorities, ..self.limits },
            features: self.features,
        }
    }
}

/// A device that is being described.
struct Asked<'a> {
    library: &'a Libcuda,
    device: sys::CUdevice,
}

impl<'a> Asked<'a> {
    fn new(library: &'a Libcuda, ordinal: u32) -> Result<Self, StartFault> {
        let mut device: sys::CUdevice = 0;
        let ordinal = c_int::try_from(ordinal).unwrap_or(c_int::MAX);
        // SAFETY: the out-parameter is a live local; an ordinal there is no device for is refused.
        let status = unsafe { (library.api().device)(&mut device, ordinal) };
        start_check("cuDeviceGet", status)?;
        Ok(Self { library, device })
    }

    fn number(&self, attribute: Attribute) -> Result<u32, StartFault> {
        let mut value: c_int = 0;
        // SAFETY: the out-parameter is a live local and the device came from `cuDeviceGet`.
        let status =
            unsafe { (self.library.api().device_attribute)(&mut value, attribute as c_int, self.device) };
        start_check("cuDeviceGetAttribute", status)?;
        Ok(u32::try_from(value).unwrap_or(0))
    }

    fn flag(&self, attribute: Attribute) -> Result<bool, StartFault> {
        Ok(self.number(attribute)? != 0)
    }

    fn name(&self) -> Result<String, StartFault> {
        let mut bytes = [0u8; NAME_BYTES];
        // SAFETY: the driver writes at most as many bytes as it is told the buffer has.
        let status = unsafe {
            (self.library.api().device_name)(
                bytes.as_mut_ptr().cast::<c_char>(),
                NAME_BYTES as c_int,
                self.device,
            )
        };
        start_check("cuDeviceGetName", status)?;
        Ok(convert::text(&bytes))
    }

    /// The identity, and whether it is that of a slice: then the older call, which names the whole device, answers
    /// something else.
    fn uuid(&self) -> Result<(Uuid, bool), StartFault> {
        let mut own = sys::CUuuid { bytes: [0; 16] };
        // SAFETY: the out-parameter is a live local of 16 bytes.
        let status = unsafe { (self.library.api().device_uuid)(&mut own, self.device) };
        start_check("cuDeviceGetUuid_v2", status)?;
        let mut whole = own;
        if let Some(device_uuid_whole) = self.library.api().device_uuid_whole {
            // SAFETY: as above.
            let status = unsafe { device_uuid_whole(&mut whole, self.device) };
            start_check("cuDeviceGetUuid", status)?;
        }
        Ok((Uuid(own.bytes.map(|byte| byte as u8)), own.bytes != whole.bytes))
    }

    fn total_memory(&self) -> Result<u64, StartFault> {
        let mut bytes = 0usize;
        // SAFETY: the out-parameter is a live local.
        let status = unsafe { (self.library.api().device_memory)(&mut bytes, self.device) };
        start_check("cuDeviceTotalMem_v2", status)?;
        Ok(bytes as u64)
    }

    fn page_granularity(&self) -> Result<u64, StartFault> {
        let mut bytes = 0usize;
        let properties = convert::page_properties(self.device, false);
        // SAFETY: the out-parameter and the properties are live locals.
        let status = unsafe {
            (self.library.api().page_granularity)(&mut bytes, &properties, convert::MINIMUM_GRANULARITY)
        };
        start_check("cuMemGetAllocationGranularity", status)?;
        Ok(bytes as u64)
    }

    fn limits(&self, capability: Capability, features: &Features) -> Result<Limits, StartFault> {
        let number = |attribute| self.number(attribute);
        let modern = capability >= (Capability { major: 7, minor: 0 });
        Ok(Limits {
            max_grid: Dim3::new(
                number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)?,
                number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)?,
                number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)?,
            ),
            max_block: Dim3::new(
                number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X)?,
                number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y)?,
                number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)?,
            ),
            max_threads_per_block: number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            max_cluster_blocks: if features.cluster_launch { PORTABLE_CLUSTER_BLOCKS } else { 1 },
            warp_threads: number(Attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE)?,
            multiprocessors: number(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            max_threads_per_multiprocessor: number(
                Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
            )?,
            max_blocks_per_multiprocessor: number(
                Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR,
            )?,
            max_registers_per_block: number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK)?,
            shared_bytes_per_block: number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)?,
            shared_bytes_per_block_optin: number(
                Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
            )?,
            shared_bytes_per_multiprocessor: number(
                Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
            )?,
            constant_bytes: number(Attribute::CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY)?,
            max_argument_bytes: if modern { MAX_ARGUMENT_BYTES } else { MAX_ARGUMENT_BYTES_BEFORE_7_0 },
            l2_bytes: u64::from(number(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?),
            allocation_alignment_bytes: ALLOCATION_ALIGNMENT_BYTES,
            page_granularity_bytes: if features.pages { self.page_granularity()? } else { 0 },
            priorities: Priorities { lowest: 0, highest: 0 },
        })
    }

    fn features(&self) -> Result<Features, StartFault> {
        let flag = |attribute| self.flag(attribute);
        let pages = flag(Attribute::CU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED)?;
        Ok(Features {
            pages,
            page_export: pages
                && flag(Attribute::CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED)?,
            memory_pool: flag(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)?,
            host_registration: flag(Attribute::CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED)?,
            cooperative_launch: flag(Attribute::CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH)?,
            cluster_launch: flag(Attribute::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH)?,
            concurrent_kernels: flag(Attribute::CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS)?,
            ptx: true,
            cubin: true,
            host_kernels: false,
            native_handles: true,
            access_checks: false,
        })
    }
}
