//! Why a worker is lost.

use std::fmt;
#[cfg(unix)]
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use kiln_driver::{Code, Error, Fault, ShortTime};

use crate::protocol::protocol_error::ProtocolViolation;

/// Why a worker is lost.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum LossCause {
    /// The device faulted. The error has the code, and the submission where it is known.
    Fault(Error),
    /// The process ended by itself. The exit status is missing if the program ignores SIGCHLD, or waits for its children elsewhere.
    Ended(Option<ExitStatus>),
    /// The watchdog found no progress for longer than its limit.
    Hung {
        /// The stream and submission, or the question, without progress.
        what: String,
        /// For how long.
        after: Duration,
    },
    /// It broke the protocol.
    Violation(ProtocolViolation),
    /// This process killed it.
    Killed,
    /// The device was closed.
    Closed,
}

impl LossCause {
    /// The error that every call returns from now on.
    pub fn error(&self, call: &'static str) -> Error {
        let code = match self {
            Self::Fault(error) => return error.clone().seen_by(call),
            Self::Hung { .. } => Code::LAUNCH_TIMEOUT,
            _ => Code::CONTEXT_IS_DESTROYED,
        };
        Error::lost(call, Fault { code, detail: self.to_string() })
    }
}

impl fmt::Display for LossCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fault(error) => write!(f, "the device failed: {error}"),
            #[cfg(unix)]
            Self::Ended(Some(status)) if status.signal().is_some() => {
                write!(f, "a signal ended the worker process ({status})")
            }
            Self::Ended(Some(status)) => write!(f, "the worker process ended by itself ({status})"),
            Self::Ended(None) => f.write_str("the worker process ended by itself"),
            Self::Hung { what, after } => write!(f, "{what} made no progress for {}", ShortTime(*after)),
            Self::Violation(violation) => violation.fmt(f),
            Self::Killed => f.write_str("this program killed the worker process"),
            Self::Closed => f.write_str("the device was closed"),
        }
    }
}
