//! The kinds of failure.

use std::sync::Arc;

use kiln_driver::DeviceKind;
use kiln_probe::libraries::MissingLibrary;
use kiln_probe::{Absence, ProbeError, UnknownPolicy};

use super::Error;
use super::code::CodeError;
use super::graph::GraphError;
use super::host_memory::OutOfHostMemory;
use super::invalid_findings_setting::UnknownFindings;
use super::misuse::Misuse;
use super::read_only::SealError;
use super::recording::RecordingError;
use super::stale::Stale;
use crate::device_state::{Cause, Phase};
use crate::signature::Mismatch;

/// The kinds of failure.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The device said no.
    #[error(transparent)]
    Driver(#[from] kiln_driver::Error),
    /// What the memory stack said.
    #[error(transparent)]
    Memory(Arc<kiln_mem::Error>),
    /// The host has no memory for what a call would bring to it.
    #[error(transparent)]
    HostMemory(#[from] OutOfHostMemory),
    /// Code could not be made ready.
    #[error(transparent)]
    Code(#[from] CodeError),
    /// The request cannot be right; nothing was queued.
    #[error(transparent)]
    Misuse(#[from] Misuse),
    /// A launch does not fit its kernel or the device; nothing was queued.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    /// A graph cannot be recorded or changed that way; nothing was queued.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The memory behind a handle cannot be reached any more.
    #[error(transparent)]
    Stale(#[from] Stale),
    /// The device is lost and may come back.
    #[error("the device is {phase}; try again when it is ready")]
    NotReady {
        /// What it is doing.
        phase: Phase,
        /// Why it was lost.
        #[source]
        cause: Arc<Cause>,
    },
    /// This work lost the device, which comes back; the same work would lose it again.
    #[error("this work lost the device")]
    Faulted {
        /// Why it was lost.
        #[source]
        cause: Arc<Cause>,
    },
    /// A device could not be found or opened.
    #[error(transparent)]
    Probe(ProbeError),
    /// A device whose runtime failed or was shut down could not be opened again.
    #[error("{kind} device {ordinal} could not be opened again after it {}", ended(failure.as_deref()))]
    Reopen {
        /// What kind of device.
        kind: DeviceKind,
        /// Which one.
        ordinal: u32,
        /// Why its last runtime failed; none if that was shut down.
        failure: Option<Arc<Cause>>,
        /// What went wrong now.
        #[source]
        cause: Box<Error>,
    },
    /// A configuration for runtimes of which one is open.
    #[error(
        "{} uses the configuration, which stays; set it before the first request for a device, or shut that runtime down first",
        user(*open)
    )]
    ConfigInUse {
        /// The device that is open; none if one is being opened right now.
        open: Option<(DeviceKind, u32)>,
    },
    /// A block cannot be mapped read-only; nothing was changed.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// No worker process could be started for a device.
    #[cfg(all(feature = "isolate", target_os = "linux"))]
    #[error(transparent)]
    Worker(Arc<kiln_isolate::WorkerStartError>),
    /// A library is not there.
    #[error(transparent)]
    Library(#[from] MissingLibrary),
    /// The checks of the device found a mistake in this work, or in work that it came after; see [`Error::finding`](crate::Error::finding).
    /// The device goes on.
    #[error("{}", finding_text(.0))]
    Finding(kiln_driver::Error),
    /// The environment says something about findings that is none of the words.
    #[error(transparent)]
    UnknownFindings(#[from] UnknownFindings),
    /// What the runtime does cannot be recorded.
    #[error(transparent)]
    Trace(#[from] RecordingError),
    /// A job panicked.
    #[error("the job panicked: {message}")]
    JobPanicked {
        /// What it said.
        message: String,
    },
    /// The stream pool has given out all it may.
    #[error("all {limit} streams are leased; drop a lease or raise the limit in the configuration")]
    StreamsExhausted {
        /// How many streams the pool may have.
        limit: usize,
    },
    /// An error of a type that this crate does not know: the caller's own, from a step kiln ran for them, or one of a
    /// crate above; see [`Error::downcast_ref`](crate::Error::downcast_ref).
    #[error(transparent)]
    Other(Arc<dyn std::error::Error + Send + Sync>),
}

impl ErrorKind {
    /// Whether no worker process could be started; never without the feature `isolate`.
    pub fn is_worker_start(&self) -> bool {
        #[cfg(all(feature = "isolate", target_os = "linux"))]
        return matches!(self, Self::Worker(_));
        #[cfg(not(all(feature = "isolate", target_os = "linux")))]
        return false;
    }
}

#[cfg(all(feature = "isolate", target_os = "linux"))]
impl From<kiln_isolate::WorkerStartError> for ErrorKind {
    fn from(error: kiln_isolate::WorkerStartError) -> Self {
        Self::Worker(Arc::new(error))
    }
}

impl From<ProbeError> for ErrorKind {
    fn from(error: ProbeError) -> Self {
        match error {
            ProbeError::Driver(error) => Self::Driver(error),
            ProbeError::Other(error) => Self::Other(error),
            error => Self::Probe(error),
        }
    }
}

impl From<UnknownPolicy> for ErrorKind {
    fn from(error: UnknownPolicy) -> Self {
        Self::Probe(error.into())
    }
}

impl From<Absence> for ErrorKind {
    fn from(absence: Absence) -> Self {
        Self::Probe(absence.into())
    }
}

fn finding_text(error: &kiln_driver::Error) -> String {
    error.finding().map_or_else(|| error.to_string(), ToString::to_string)
}

fn ended(failure: Option<&Cause>) -> String {
    failure.map_or_else(|| "was shut down".into(), |cause| format!("failed ({cause})"))
}

fn user(open: Option<(DeviceKind, u32)>) -> String {
    let device = |(kind, ordinal)| format!("{kind} device {ordinal}");
    open.map_or_else(|| "a device that is being opened".into(), device)
}
