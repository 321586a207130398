//! Why there is no device, when nothing is broken.
//!
//! A machine without a GPU is an ordinary machine. Its answer is a value of this type and never an error by itself;
//! it becomes one where a device was required. What is there and does not work is a fault, which is an
//! [`ProbeError`](crate::ProbeError) from the start.

use kiln_driver::Code;

use crate::gpu_policy::Policy;

pub use kiln_cuda::DriverAbsence as CudaAbsence;

/// Why there is no device.
///
/// ```
/// use kiln::probe::Absence;
/// use kiln::probe::CudaAbsence;
///
/// let absence = Absence::from(CudaAbsence::NoDevice);
/// assert!(absence.to_string().starts_with("the NVIDIA driver sees no device"));
/// assert_eq!(absence.name(), "no-device");
/// ```
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Absence {
    /// The machine has no usable CUDA.
    #[error(transparent)]
    Cuda(#[from] CudaAbsence),
    /// The policy in force says to leave CUDA alone, so no device was looked for.
    #[error("the policy `{policy}` leaves CUDA alone")]
    SwitchedOff {
        /// That policy.
        policy: Policy,
    },
}

impl Absence {
    /// One word for machines to read.
    pub fn name(&self) -> &'static str {
        match self {
            Self::SwitchedOff { .. } => "switched-off",
            Self::Cuda(CudaAbsence::UnsupportedPlatform { .. }) => "unsupported-platform",
            Self::Cuda(CudaAbsence::NoDriver { .. }) => "no-driver",
            Self::Cuda(CudaAbsence::Named { .. }) => "driver-misnamed",
            Self::Cuda(CudaAbsence::TooOld { .. }) => "driver-too-old",
            Self::Cuda(CudaAbsence::Mismatched { .. }) => "driver-mismatch",
            Self::Cuda(CudaAbsence::NoDevice) => "no-device",
            Self::Cuda(_) => "driver-unusable",
        }
    }

    /// What the driver answered, where it answered something.
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Cuda(absence) => kiln_cuda::Unavailable::from(absence.clone()).code(),
            Self::SwitchedOff { .. } => None,
        }
    }

    /// What a person can do about it.
    pub fn next_step(&self) -> &'static str {
        match self {
            Self::SwitchedOff { .. } => "choose the policy `auto` or `required`",
            Self::Cuda(CudaAbsence::UnsupportedPlatform { .. }) => {
                "run on Linux with an NVIDIA GPU, or use the simulated device"
            }
            Self::Cuda(CudaAbsence::NoDriver { .. }) => {
                "install the NVIDIA driver (in a container: start it with the GPU made visible), or use the \
                 simulated device"
            }
            Self::Cuda(CudaAbsence::Named { .. }) => "correct or unset KILN_LIBCUDA",
            Self::Cuda(CudaAbsence::Stub { .. }) => {
                "take the toolkit's `stubs` folder out of LD_LIBRARY_PATH"
            }
            Self::Cuda(CudaAbsence::TooOld { .. }) => "update the NVIDIA driver",
            Self::Cuda(CudaAbsence::Mismatched { .. }) => {
                "reboot after a driver update, or remove the CUDA compatibility libraries"
            }
            Self::Cuda(CudaAbsence::NoDevice) => {
                "check CUDA_VISIBLE_DEVICES and the container's GPU options, or use the simulated device"
            }
            Self::Cuda(_) => "reinstall the NVIDIA driver",
        }
    }
}
