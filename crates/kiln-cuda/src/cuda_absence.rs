//! Why CUDA cannot be used on this machine.
//!
//! There are two kinds, because callers handle them differently. A [`DriverAbsence`] is a property of the machine: it has no driver, or none
//! kiln can use, or no device; a program that may run without a GPU continues. A [`StartFault`] is a driver that should work and does
//! not; a program that wants the GPU must report it.

use std::fmt;
use std::path::PathBuf;

use kiln_driver::{Code, Version};

/// Why libcuda cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unavailable {
    /// There is no driver or no device.
    #[error(transparent)]
    Absent(#[from] DriverAbsence),
    /// There is a driver, and it does not work.
    #[error(transparent)]
    Fault(#[from] StartFault),
    /// The driver was started in a process that forked this one.
    #[error(
        "CUDA was started before this process was forked and cannot be used in it; start the child with exec"
    )]
    Forked,
}

/// What a machine lacks.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DriverAbsence {
    /// NVIDIA has no driver for this system, or kiln does not know it.
    #[error("CUDA is not supported on {system}; kiln uses it on Linux")]
    UnsupportedPlatform {
        /// The name of the operating system.
        system: &'static str,
    },
    /// No driver library was found.
    #[error("no NVIDIA driver that supports CUDA 12.4 or newer was found (tried {})", names_text(tried))]
    NoDriver {
        /// What was tried, in order.
        tried: Vec<Attempt>,
    },
    /// There is a file with the driver's name, and it cannot be loaded: it is empty, or made for another machine.
    #[error("{} cannot be loaded: {why}; reinstall the NVIDIA driver", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What the loader said.
        why: String,
    },
    /// The environment names a driver library, and it is none that can be used.
    #[error("{variable} names {}, which cannot be used as the driver: {why}; correct or unset {variable}", path.display())]
    Named {
        /// The variable.
        variable: &'static str,
        /// What it names.
        path: PathBuf,
        /// What the loader said, or what the file lacks.
        why: String,
    },
    /// The library is the one that programs are linked against where there is no driver.
    #[error("{library} is a stub for linking; take the toolkit's `stubs` folder out of LD_LIBRARY_PATH")]
    Stub {
        /// The library, as it was opened.
        library: String,
    },
    /// The library lacks an entry point that every driver kiln can use has.
    #[error("{library} has no `{symbol}`; reinstall the NVIDIA driver")]
    Incomplete {
        /// The library, as it was opened.
        library: String,
        /// The entry point.
        symbol: &'static str,
    },
    /// The driver is older than kiln can use.
    #[error("the NVIDIA driver supports CUDA {found}; kiln needs {needed} or newer")]
    TooOld {
        /// The version it supports.
        found: Version,
        /// The version kiln needs.
        needed: Version,
    },
    /// The library and the driver in the kernel do not belong together.
    #[error(
        "{code}: libcuda does not fit the driver that is running; reboot after an update, or remove the compat libraries"
    )]
    Mismatched {
        /// What `cuInit` answered.
        code: Code,
    },
    /// The driver runs and sees no device.
    #[error("the NVIDIA driver sees no device; check CUDA_VISIBLE_DEVICES and the container's GPU options")]
    NoDevice,
}

/// One name that was tried, and why it did not work.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attempt {
    /// The name or path.
    pub name: String,
    /// What the loader said.
    pub error: String,
}

/// A driver call that should have worked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{call}: {code}{}", next_text(*code))]
pub struct StartFault {
    /// The entry point of libcuda.
    pub call: &'static str,
    /// What it answered.
    pub code: Code,
}

impl Unavailable {
    /// Whether there is simply nothing to use.
    pub fn is_absence(&self) -> bool {
        matches!(self, Self::Absent(_))
    }

    /// What libcuda answered, if it answered.
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Absent(DriverAbsence::Stub { .. }) => Some(Code::STUB_LIBRARY),
            Self::Absent(DriverAbsence::Mismatched { code }) => Some(*code),
            Self::Absent(DriverAbsence::NoDevice) => Some(Code::NO_DEVICE),
            Self::Fault(fault) => Some(fault.code),
            Self::Absent(_) | Self::Forked => None,
        }
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The loader begins with the name itself.
        match self.error.starts_with(&self.name) {
            true => f.write_str(&self.error),
            false => write!(f, "{}: {}", self.name, self.error),
        }
    }
}

fn names_text(tried: &[Attempt]) -> String {
    tried.iter().map(|attempt| attempt.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// What to look at, for the codes that have a usual cause.
fn next_text(code: Code) -> &'static str {
    match code {
        Code::NOT_INITIALIZED => {
            "; the driver did not start: check that this process is not a fork of one that uses CUDA"
        }
        Code::DEVICE_UNAVAILABLE => "; the device is held by another process in exclusive mode",
        Code::SYSTEM_NOT_READY => "; start the fabric manager (nvidia-fabricmanager)",
        Code::UNKNOWN => {
            "; check that the nvidia_uvm kernel module is loaded and its device files are visible"
        }
        Code::OPERATING_SYSTEM => "; check the permissions of /dev/nvidia*",
        Code::OUT_OF_MEMORY => "; another process holds the device's memory",
        _ => "",
    }
}
