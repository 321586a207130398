//! Why there is no kernel.

use kiln_cuda::nvrtc::NvrtcError;
use kiln_driver::{Capability, Code, Version};

/// Why code could not be made ready.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CodeError {
    /// NVRTC is missing, or did not accept the source.
    #[error(transparent)]
    Nvrtc(#[from] NvrtcError),
    /// Text that is no PTX.
    #[error("the PTX cannot be read: {0}")]
    Ptx(#[from] kiln_ptx::ParseError),
    /// PTX of a version the driver does not know.
    #[error(
        "the PTX is newer than the driver, which speaks CUDA {driver}; compile with a toolkit of at most that version, or update the driver"
    )]
    PtxTooNew {
        /// What the driver speaks.
        driver: Version,
    },
    /// Machine code for another architecture.
    #[error(
        "the code was compiled for another architecture than {capability}, which this device has; compile it for that one, or load PTX"
    )]
    Architecture {
        /// What the device has.
        capability: Capability,
    },
    /// NVRTC compiles only for newer devices.
    #[error("NVRTC {nvrtc} does not compile for capability {capability} any more; use an older toolkit")]
    DeviceTooOld {
        /// Its version.
        nvrtc: Version,
        /// What the device has.
        capability: Capability,
    },
    /// Machine code where PTX was asked for.
    #[error("machine code has no PTX that could be read; begin with CUDA C or PTX")]
    NoPtx,
    /// A template that was not asked for when the source was compiled.
    #[error("`{name}` was not compiled: name it with `ModuleBuilder::instantiate`")]
    NotInstantiated {
        /// The name expression.
        name: String,
    },
}

impl CodeError {
    /// Whether the source has mistakes, with their places.
    pub fn is_compile_error(&self) -> bool {
        match self {
            Self::Nvrtc(error) => error.is_compile_error(),
            Self::Ptx(_) => true,
            _ => false,
        }
    }

    /// A better word for what the loader said, if there is one.
    pub(super) fn of_loader(code: Option<Code>, driver: Version, capability: Capability) -> Option<Self> {
        match code {
            Some(Code::UNSUPPORTED_PTX_VERSION) => Some(Self::PtxTooNew { driver }),
            Some(Code::NO_BINARY_FOR_GPU) => Some(Self::Architecture { capability }),
            _ => None,
        }
    }
}
