//! The device a command runs on.

use std::sync::Arc;

use clap::ValueEnum;
#[cfg(target_os = "linux")]
use kiln::recovery::DeviceSpec;
use kiln::{DeviceRuntime, Policy, probe::Availability};
use kiln_driver::Driver;

/// The device a user asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Where {
    /// A GPU if there is one, else the simulated device.
    Auto,
    /// A GPU.
    Cuda,
    /// The simulated device.
    Sim,
}

/// The device that was chosen, and why.
pub(crate) struct Choice {
    /// The runtime of a GPU; none for the simulated device, which every command configures for itself.
    pub(crate) gpu: Option<&'static DeviceRuntime>,
    /// Why this device was chosen.
    pub(crate) reason: String,
}

impl Where {
    /// Chooses a device for a worker process, without opening it here; with the reason.
    ///
    /// # Errors
    /// As for [`choose`](Self::choose).
    #[cfg(target_os = "linux")]
    pub(crate) fn backend(self, seed: u64) -> kiln::Result<(DeviceSpec, String)> {
        let simulated = |reason: String| (DeviceSpec::simulated(seed), reason);
        let policy = if self == Self::Cuda { Policy::Required } else { kiln::probe::policy()? };
        if self == Self::Sim {
            return Ok(simulated("as asked".into()));
        }
        match kiln::probe::prober().availability_under(policy)? {
            Availability::Absent(absence) if policy == Policy::Required => Err(absence.into()),
            Availability::Absent(absence) => Ok(simulated(no_gpu(absence.name()))),
            _ if policy == Policy::Simulate => Ok(simulated("policy `simulate`".into())),
            Availability::Available(devices) => {
                let ordinal = devices.working().next().map_or(0, |device| device.ordinal);
                Ok((DeviceSpec::cuda(ordinal), "a GPU was found".into()))
            }
        }
    }

    /// Chooses a device.
    ///
    /// # Errors
    /// There is no device of the kind that was asked for, or it does not work.
    pub(crate) fn choose(self) -> kiln::Result<Choice> {
        let simulated = |reason: String| Choice { gpu: None, reason };
        match self {
            Self::Sim => Ok(simulated("as asked".into())),
            Self::Cuda => Ok(Choice { gpu: Some(kiln::probe::require()?), reason: "as asked".into() }),
            Self::Auto => {
                let policy = kiln::probe::policy()?;
                match kiln::probe::prober().availability_under(policy)? {
                    Availability::Absent(absence) if policy != Policy::Required => {
                        Ok(simulated(no_gpu(absence.name())))
                    }
                    _ if policy == Policy::Simulate => Ok(simulated("policy `simulate`".into())),
                    _ => Ok(Choice { gpu: Some(kiln::probe::require()?), reason: "a GPU was found".into() }),
                }
            }
        }
    }

    /// The driver of a GPU; none for the simulated device.
    ///
    /// # Errors
    /// As for [`choose`](Self::choose).
    pub(crate) fn gpu_driver(self) -> kiln::Result<Option<Arc<dyn Driver>>> {
        Ok(self.choose()?.gpu.map(|runtime| Arc::clone(runtime.driver())))
    }
}

fn no_gpu(absence: &str) -> String {
    let why = match absence {
        "switched-off" => "switched off by the policy",
        "unsupported-platform" => "CUDA does not support this system",
        "no-driver" => "no NVIDIA driver was found",
        "driver-misnamed" => "KILN_LIBCUDA names a file that cannot be used",
        "driver-too-old" => "the NVIDIA driver is too old",
        "driver-mismatch" => "the driver library does not match the kernel module",
        "no-device" => "the NVIDIA driver sees no device",
        "driver-unusable" => "the NVIDIA driver cannot be used",
        other => other,
    };
    format!("no GPU: {why}; see kiln doctor")
}
