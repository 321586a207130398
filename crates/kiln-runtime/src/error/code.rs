//! Errors of compiling and loading code and of looking up kernels.

use kiln_cuda::nvrtc::NvrtcError;
use kiln_driver::{Capability, Code, DeviceInfo, Image, Refusal, Version};

use super::Error;
use crate::signature::Number;

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
        "the PTX{} is newer than the driver, which supports CUDA {driver}; compile with a toolkit of at most that version, or update the driver{}",
        of_version(*ptx), told(log)
    )]
    PtxTooNew {
        /// The version of the PTX, where it can be read.
        ptx: Option<Version>,
        /// The version that the driver supports.
        driver: Version,
        /// What the loader wrote.
        log: String,
    },
    /// Code for another architecture.
    #[error(
        "the code was compiled for {}, and this device has compute capability {capability}; compile it for that one, or load PTX for it or an older one{}",
        compiled_for.as_deref().unwrap_or("another architecture"), told(log)
    )]
    Architecture {
        /// The architecture it was compiled for, such as `sm_120`, where that can be read.
        compiled_for: Option<String>,
        /// What the device has.
        capability: Capability,
        /// What the loader wrote.
        log: String,
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
    /// A module variable that does not exist.
    #[error(
        "the module has no variable `{name}`{}; a variable that no kernel uses may have been left out by the compiler",
        instead(nearest)
    )]
    UnknownVariable {
        /// The name.
        name: String,
        /// Those that are written most like it, the nearest first; none where the module's names are not known.
        nearest: Vec<String>,
    },
    /// A module variable as elements that do not fill it.
    #[error(
        "variable `{name}` has {bytes} bytes, which are no whole number of elements of {element_bytes} bytes"
    )]
    VariableSize {
        /// The variable.
        name: String,
        /// Its bytes.
        bytes: u64,
        /// Bytes of an element.
        element_bytes: u64,
    },
    /// A module variable as numbers of another kind.
    #[error("variable `{name}` is {declared} and was asked for as {given}; use the type it is declared with")]
    VariableNumber {
        /// The variable.
        name: String,
        /// What it is.
        declared: Number,
        /// What was asked for.
        given: Number,
    },
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

    /// A better word for what the loader said of an image, if there is one.
    fn of_loader(info: &DeviceInfo, image: &Image<'_>, refusal: &Refusal) -> Option<Self> {
        let Refusal::Image { code, log } = refusal else { return None };
        let ptx = image.ptx().and_then(|text| kiln_ptx::PtxModule::parse(text).ok());
        let (capability, log) = (info.capability, log.clone());
        let compiled_for = ptx.as_ref().map(|ptx| ptx.target.architecture.to_string());
        match (*code)? {
            Code::UNSUPPORTED_PTX_VERSION => {
                let ptx = ptx.map(|ptx| Version { major: ptx.version.major, minor: ptx.version.minor });
                Some(Self::PtxTooNew { ptx, driver: info.driver_version, log })
            }
            Code::NO_BINARY_FOR_GPU => Some(Self::Architecture { compiled_for, capability, log }),
            // PTX for a newer device is refused as PTX that is wrong.
            Code::INVALID_PTX if ptx.and_then(|ptx| ptx.target.sm()) > Some(number(capability)) => {
                Some(Self::Architecture { compiled_for, capability, log })
            }
            _ => None,
        }
    }
}

/// What a driver said of an image, in better words where there are any.
pub(crate) fn explained(info: &DeviceInfo, image: &Image<'_>, error: kiln_driver::Error) -> Error {
    match error.refusal().and_then(|refusal| CodeError::of_loader(info, image, refusal)) {
        Some(better) => better.into(),
        None => error.into(),
    }
}

/// 90 for 9.0, as architectures are numbered.
fn number(capability: Capability) -> u32 {
    capability.major * 10 + capability.minor
}

fn of_version(ptx: Option<Version>) -> String {
    ptx.map_or_else(String::new, |version| format!(" of version {version}"))
}

fn told(log: &str) -> String {
    match log.trim() {
        "" => String::new(),
        log => format!("; the loader says: {log}"),
    }
}

/// Names that may have been meant.
fn instead(nearest: &[String]) -> String {
    match nearest {
        [] => String::new(),
        names => format!("; the nearest are `{}`", names.join("`, `")),
    }
}
