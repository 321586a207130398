//! Why a device could not be opened.

use kiln_driver::Code;

use crate::cuda_absence::{StartFault, Unavailable};

/// Why a device could not be opened.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no CUDA to open a device of.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// There is no device with this number.
    #[error("there is no CUDA device {ordinal}; this process sees {count}")]
    UnknownOrdinal {
        /// The number.
        ordinal: u32,
        /// How many devices there are.
        count: u32,
    },
    /// The device is there and no context could be created for it.
    #[error("failed to create a CUDA context for device {ordinal}: {fault}")]
    Device {
        /// The number.
        ordinal: u32,
        /// What the driver said.
        fault: StartFault,
    },
}

impl OpenError {
    /// Whether there is simply no CUDA here.
    pub fn is_absence(&self) -> bool {
        matches!(self, Self::Unavailable(reason) if reason.is_absence())
    }

    /// Whether the device has no memory left for a context.
    pub fn is_oom(&self) -> bool {
        self.code() == Some(Code::OUT_OF_MEMORY)
    }

    /// Whether the device was lost earlier in this process and stays so.
    pub fn is_sticky(&self) -> bool {
        self.code().is_some_and(Code::is_sticky)
    }

    /// Whether the same request may succeed later without anything being installed or changed.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Device { .. } => !self.is_sticky(),
            Self::Unavailable(Unavailable::Fault(_)) => true,
            Self::Unavailable(_) | Self::UnknownOrdinal { .. } => false,
        }
    }

    /// What the driver answered, if it answered.
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Unavailable(reason) => reason.code(),
            Self::UnknownOrdinal { .. } => None,
            Self::Device { fault, .. } => Some(fault.code),
        }
    }
}
