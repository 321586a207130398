//! Why there is no worker.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use crate::violation::Violation;

/// Why a worker could not be started. Nothing of it is left.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The program lacks the line that makes it a worker when it is started as one.
    #[error("this program cannot be its own worker; put `kiln_isolate::worker_entry();` first in its main")]
    NoEntry,
    /// A worker wants a worker.
    #[error(
        "this process was started as a worker but did not enter `kiln_isolate::worker_entry()`; call it first in main"
    )]
    InsideWorker,
    /// The system did not start it.
    #[error("{} could not be started: {error}", .program.display())]
    Spawn {
        /// What was to be started.
        program: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The system had no more of something, descriptors perhaps.
    #[error("the system did not give {what}: {error}")]
    System {
        /// What was asked for.
        what: &'static str,
        /// What the system said.
        error: io::Error,
    },
    /// What names the device is too long to be sent.
    #[error("{bytes} bytes to name a device are too many")]
    Argument {
        /// How long it is.
        bytes: usize,
    },
    /// It started, and ended before it was ready.
    #[error("the worker ended before it was ready ({})", status_text(.status))]
    Ended {
        /// How, where the system can tell.
        status: Option<ExitStatus>,
    },
    /// It did not become ready in time, and was ended.
    #[error("the worker was not ready after {after:?}; give it longer, or look at what keeps its device")]
    TimedOut {
        /// How long it had.
        after: Duration,
    },
    /// It has no device.
    #[error("the worker has no device: {text}")]
    Device {
        /// Whether there is none, as opposed to one that does not work.
        absent: bool,
        /// In the worker's words.
        text: String,
    },
    /// It does not keep the protocol, and was ended.
    #[error(transparent)]
    Violation(Violation),
    /// No thread could be started to look after it.
    #[error("no thread could be started to look after the worker: {0}")]
    Thread(io::Error),
}

impl StartError {
    /// Whether there is no such device, as opposed to one that does not work.
    pub fn is_absence(&self) -> bool {
        matches!(self, Self::Device { absent: true, .. })
    }

    /// Whether the same may work later: the system was short of something, or the worker came to grief by itself.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::System { .. } | Self::Ended { .. } | Self::TimedOut { .. } | Self::Thread(_) => true,
            // No process to be had now, as opposed to no program to be run.
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
