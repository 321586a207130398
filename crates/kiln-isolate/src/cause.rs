//! Why a worker is no longer there.

use std::fmt;
use std::process::ExitStatus;
use std::time::Duration;

use kiln_driver::{Code, Error, Fault};

use crate::violation::Violation;

/// What ended the use of a worker.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Cause {
    /// The device said that it is lost; the error has the code, and the submission where that is known.
    Fault(Error),
    /// The process ended; how, where the system can tell. It tells nobody if this program ignores how its children end, and only the first who
    /// asks if it waits for them elsewhere.
    Ended(Option<ExitStatus>),
    /// Work did not get on for longer than it may.
    Hung {
        /// What did not get on.
        what: String,
        /// For how long.
        after: Duration,
    },
    /// It broke the protocol.
    Violation(Violation),
    /// It was told to end by this process.
    Killed,
    /// The device was closed.
    Closed,
}

impl Cause {
    /// The answer to every call from then on.
    pub fn error(&self, call: &'static str) -> Error {
        let code = match self {
            Self::Fault(error) => return error.clone().seen_by(call),
            Self::Hung { .. } => Code::LAUNCH_TIMEOUT,
            _ => Code::CONTEXT_IS_DESTROYED,
        };
        Error::lost(call, Fault { code, detail: self.to_string() })
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fault(error) => write!(f, "the device failed: {error}"),
            Self::Ended(Some(status)) => write!(f, "the worker process ended by itself ({status})"),
            Self::Ended(None) => f.write_str("the worker process ended by itself"),
            Self::Hung { what, after } => write!(f, "{what} did not get on for {after:?}"),
            Self::Violation(violation) => violation.fmt(f),
            Self::Killed => f.write_str("the worker process was killed by its client"),
            Self::Closed => f.write_str("the device was closed"),
        }
    }
}
