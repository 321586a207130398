//! Why there is no device, when nothing is broken.
//!
//! A machine without a GPU is an ordinary machine. Its answer is a value of this type and never an error by itself;
//! it becomes one where somebody required a device. What is there and does not work is a fault, which is an
//! [`Error`](crate::Error) from the start.

use kiln_driver::{Code, Version};

use super::policy::Policy;

/// Why there is no device.
///
/// ```
/// use kiln::probe::Absence;
///
/// let absence = Absence::NoDriver { detail: "libcuda.so.1: cannot open shared object file".into() };
/// assert_eq!(absence.to_string(), "no NVIDIA driver: libcuda.so.1: cannot open shared object file");
/// assert!(absence.next_step().starts_with("install the NVIDIA driver"));
/// ```
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Absence {
    /// CUDA does not exist for this operating system.
    #[error("CUDA does not exist on {system}")]
    UnsupportedPlatform {
        /// The operating system.
        system: String,
    },
    /// There is no usable driver library.
    #[error("no NVIDIA driver: {detail}")]
    NoDriver {
        /// What the search found instead.
        detail: String,
    },
    /// There is a driver, and it is older than the oldest one kiln speaks to.
    #[error("the NVIDIA driver is too old: {detail}; kiln needs one for CUDA {needed} or newer")]
    DriverTooOld {
        /// What it has or lacks.
        detail: String,
        /// The oldest CUDA version kiln speaks.
        needed: Version,
    },
    /// The parts of the driver, or the driver and the device, do not go together.
    #[error("the NVIDIA driver does not match this machine: {code}")]
    DriverMismatch {
        /// What the driver said.
        code: Code,
    },
    /// There is a driver and no device it may use.
    #[error("the NVIDIA driver sees no device")]
    NoDevice,
    /// The policy in force says to leave CUDA alone, so nobody looked.
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
            Self::UnsupportedPlatform { .. } => "unsupported-platform",
            Self::NoDriver { .. } => "no-driver",
            Self::DriverTooOld { .. } => "driver-too-old",
            Self::DriverMismatch { .. } => "driver-mismatch",
            Self::NoDevice => "no-device",
            Self::SwitchedOff { .. } => "switched-off",
        }
    }

    /// What the driver answered, where it answered something.
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::DriverMismatch { code } => Some(*code),
            _ => None,
        }
    }

    /// What a person can do about it.
    pub fn next_step(&self) -> &'static str {
        match self {
            Self::UnsupportedPlatform { .. } => {
                "run on Linux with an NVIDIA GPU, or use the simulated device"
            }
            Self::NoDriver { .. } => {
                "install the NVIDIA driver (in a container: start it with the GPU made visible), or use the \
                 simulated device"
            }
            Self::DriverTooOld { .. } => "update the NVIDIA driver",
            Self::DriverMismatch { .. } => {
                "reboot after a driver update, and remove a CUDA compatibility package this GPU does not support"
            }
            Self::NoDevice => {
                "check that a GPU is built in and that CUDA_VISIBLE_DEVICES does not hide it, or use the \
                 simulated device"
            }
            Self::SwitchedOff { .. } => "choose the policy `auto` or `required`",
        }
    }
}
