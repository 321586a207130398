//! Errors of starting a worker.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use kiln_driver::ShortTime;

use crate::protocol::protocol_error::ProtocolViolation;

/// Why a worker could not be started. Its process, if there was one, has ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerStartError {
    /// Worker processes are not supported on this system.
    #[error("a device in a worker process needs Linux; open it in this process")]
    Unsupported,
    /// The program does not call [`worker_entry`](crate::worker_entry), so starting it as a worker would run the program a second time.
    #[error("this program cannot be its own worker; put `kiln_isolate::worker_entry();` first in its main")]
    NoEntry,
    /// A worker tries to start a worker.
    #[error(
        "this process was started as a worker but did not enter `kiln_isolate::worker_entry()`; call it first in main"
    )]
    InsideWorker,
    /// The system did not start the program.
    #[error("{} could not be started: {error}", .program.display())]
    Spawn {
        /// The program.
        program: PathBuf,
        /// What the system answered.
        error: io::Error,
    },
    /// The system refused a resource, such as a descriptor.
    #[error("the system did not provide {what}: {error}")]
    System {
        /// The resource.
        what: &'static str,
        /// What the system answered.
        error: io::Error,
    },
    /// The argument that names the device is too long to be sent.
    #[error("the argument of the device has {bytes} bytes, which is too long")]
    Argument {
        /// How long it is.
        bytes: usize,
    },
    /// The worker exited before it was ready.
    #[error("the worker ended before it was ready ({})", status_text(.status))]
    Ended {
        /// Its exit status, where the system can tell.
        status: Option<ExitStatus>,
    },
    /// The worker was not ready in time, and was killed.
    #[error(
        "the worker was not ready after {}; raise `start_limit`, or find out why its device does not open", ShortTime(*.after)
    )]
    TimedOut {
        /// How long it had.
        after: Duration,
    },
    /// The worker could not open its device.
    #[error("the worker has no device: {text}")]
    Device {
        /// Whether there is no such device, as opposed to one that does not work.
        absent: bool,
        /// The worker's message.
        text: String,
    },
    /// The worker broke the protocol, and was killed.
    #[error(transparent)]
    Violation(ProtocolViolation),
    /// No thread could be started to supervise the worker.
    #[error("no thread could be started to supervise the worker: {0}")]
    Thread(io::Error),
}

impl WorkerStartError {
    /// Whether there is no such device, as opposed to one that does not work.
    pub fn is_absence(&self) -> bool {
        matches!(self, Self::Device { absent: true, .. })
    }

    /// Whether the same call may succeed later: the system lacked a resource, or the worker ended by itself.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::System { .. } | Self::Ended { .. } | Self::TimedOut { .. } | Self::Thread(_) => true,
            // No process could be created, as opposed to no program that could be run.
            Self::Spawn { error, .. } => {
                matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::OutOfMemory)
            }
            _ => false,
        }
    }
}

fn status_text(status: &Option<ExitStatus>) -> String {
    status.map_or_else(|| "no status".into(), |status| status.to_string())
}
