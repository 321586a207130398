//! CUDA as a platform.

use std::sync::Arc;

use kiln_cuda::{CudaDevice, DeviceDescription, OpenError, Unavailable};
use kiln_driver::{DeviceKind, Driver};
#[cfg(all(feature = "isolate", target_os = "linux"))]
use kiln_isolate::DeviceSpec;

use crate::cuda_init_error::{driver_error, unavailable};
use crate::devices::DeviceSummary;
use crate::error::{ProbeError, Result};
use crate::platform::{Listing, Platform};

/// The CUDA devices of this machine.
#[derive(Clone, Copy, Debug)]
pub struct CudaPlatform;

impl Platform for CudaPlatform {
    fn kind(&self) -> DeviceKind {
        DeviceKind::Cuda
    }

    fn list(&self) -> Result<Listing> {
        let listed = kiln_cuda::Libcuda::load().and_then(kiln_cuda::Libcuda::devices);
        match listed {
            Ok(devices) => Ok(Listing::Devices(
                devices
                    .iter()
                    .map(|device| {
                        device.as_ref().map(DeviceSummary::from).map_err(|fault| driver_error(*fault))
                    })
                    .collect(),
            )),
            Err(Unavailable::Absent(absence)) => Ok(Listing::Absent(absence.into())),
            Err(reason) => Err(unavailable(reason)),
        }
    }

    fn open(&self, ordinal: u32) -> Result<Arc<dyn Driver>> {
        match CudaDevice::open(ordinal) {
            Ok(device) => Ok(device),
            Err(OpenError::Unavailable(reason)) => Err(unavailable(reason)),
            Err(OpenError::Device { fault, .. }) => Err(driver_error(fault).into()),
            Err(OpenError::UnknownOrdinal { ordinal, count }) => Err(ProbeError::UnknownDevice {
                kind: DeviceKind::Cuda,
                wanted: format!("ordinal {ordinal}"),
                known: count as usize,
            }),
            Err(other) => Err(ProbeError::other(other)),
        }
    }

    #[cfg(all(feature = "isolate", target_os = "linux"))]
    fn backend(&self, ordinal: u32) -> Result<Option<DeviceSpec>> {
        Ok(Some(DeviceSpec::cuda(ordinal)))
    }
}

impl From<&DeviceDescription> for DeviceSummary {
    fn from(device: &DeviceDescription) -> Self {
        Self {
            ordinal: device.ordinal,
            kind: DeviceKind::Cuda,
            name: device.name.clone(),
            uuid: device.uuid,
            pci: device.pci,
            capability: device.capability,
            driver_version: device.driver_version,
            total_memory_bytes: device.total_memory_bytes,
            mig: device.mig,
            multiprocessors: device.limits.multiprocessors,
            max_threads_per_multiprocessor: device.limits.max_threads_per_multiprocessor,
            shared_bytes_per_block: device.limits.shared_bytes_per_block,
            shared_bytes_per_block_optin: device.limits.shared_bytes_per_block_optin,
        }
    }
}
