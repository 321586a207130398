//! Exit codes.
//!
//! The codes are the same for every command, so that a script can tell a wrong flag from a missing GPU from a broken one without
//! reading text.

use std::process::ExitCode;

use kiln::error::ErrorKind;
use kiln::probe::ProbeError;
use kiln::program::ProgramError;
use kiln_driver::Refusal;

/// How a command ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Exit {
    /// The command did what was asked; for `doctor`: the machine has what the policy needs.
    Done,
    /// The command line or the environment is wrong, or a file or the standard output cannot be read or written.
    Usage,
    /// Refused, or a device, driver or compiler is missing.
    Absent,
    /// Code did not compile or load.
    Compile,
    /// A fault, or a check found something.
    Fault,
    /// A program that the command ran ended with this.
    Program(u8),
}

impl Exit {
    /// The number.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Usage => 2,
            Self::Absent => 3,
            Self::Compile => 4,
            Self::Fault => 5,
            Self::Program(code) => code,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

impl From<&kiln::Error> for Exit {
    fn from(error: &kiln::Error) -> Self {
        if let Some(error) = error.downcast_ref::<ProgramError>() {
            return if error.is_outcome() { Self::Fault } else { Self::Absent };
        }
        match error.kind() {
            ErrorKind::Probe(
                ProbeError::UnknownPolicy { .. }
                | ProbeError::UnknownSelection { .. }
                | ProbeError::Environment { .. },
            ) => Self::Usage,
            ErrorKind::UnknownFindings(_) | ErrorKind::Trace(_) => Self::Usage,
            ErrorKind::Code(error) if error.is_compile_error() => Self::Compile,
            ErrorKind::Code(_) | ErrorKind::Library(_) => Self::Absent,
            ErrorKind::Probe(
                ProbeError::Absent(_) | ProbeError::UnknownDevice { .. } | ProbeError::PolicyConflict { .. },
            ) => Self::Absent,
            // Nothing was launched: the arguments do not fit, or the device has no room for them.
            ErrorKind::Mismatch(_) | ErrorKind::Misuse(_) => Self::Absent,
            ErrorKind::Driver(_) | ErrorKind::Memory(_) if error.is_oom() => Self::Absent,
            _ => error.driver().map_or(Self::Fault, from_driver),
        }
    }
}

fn from_driver(error: &kiln_driver::Error) -> Exit {
    match error.refusal() {
        Some(Refusal::Image { .. }) => Exit::Compile,
        Some(Refusal::Driver(_)) => Exit::Fault,
        Some(_) => Exit::Absent,
        None if error.is_unsupported() => Exit::Absent,
        None => Exit::Fault,
    }
}
