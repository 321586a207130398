//! Faults: what ends a launch.

use std::fmt;

/// Why a launch ended before its kernel was done, as CUDA names it.
///
/// ```
/// use kiln_ptx::exec::ExecFault;
///
/// assert_eq!(ExecFault::IllegalAddress.code(), 700);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ExecFault {
    /// An address that may not be accessed.
    IllegalAddress,
    /// The kernel would not end.
    LaunchTimeout,
    /// `assert` failed.
    Assert,
    /// The stack of a thread overflowed.
    HardwareStackError,
    /// An address that is no multiple of the size of the access.
    MisalignedAddress,
    /// A call to where no code is.
    InvalidPc,
    /// Anything else, a trap among it.
    LaunchFailed,
}

impl ExecFault {
    /// The number of the CUDA error.
    pub fn code(self) -> u32 {
        match self {
            Self::IllegalAddress => 700,
            Self::LaunchTimeout => 702,
            Self::Assert => 710,
            Self::HardwareStackError => 714,
            Self::MisalignedAddress => 716,
            Self::InvalidPc => 718,
            Self::LaunchFailed => 719,
        }
    }
}

impl fmt::Display for ExecFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::IllegalAddress => "an illegal memory access",
            Self::LaunchTimeout => "the launch timed out",
            Self::Assert => "an assertion failed",
            Self::HardwareStackError => "a stack error",
            Self::MisalignedAddress => "a misaligned address",
            Self::InvalidPc => "an invalid program counter",
            Self::LaunchFailed => "an unspecified launch failure",
        };
        write!(f, "{text} ({})", self.code())
    }
}
