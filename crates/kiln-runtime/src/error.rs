//! The one error of this crate.
//!
//! It keeps what a caller needs to decide (the kind, the CUDA code, the call, the label of the backend that asked) and
//! answers by predicates. A label is put on at the edge where a backend asked, whatever the kind. The plain text is one
//! line about what went wrong; the alternate form (`{:#}`) adds the causes below it.

use std::fmt;
use std::sync::Arc;

use kiln_driver::{Code, DeviceKind};

use crate::buffer::Stale;
use crate::code::CodeError;
use crate::graph::GraphError;
use crate::launch::Mismatch;
use crate::libraries::MissingLibrary;
use crate::misuse::Misuse;
use crate::probe::{Absence, Policy};
use crate::program::ProgramError;
use crate::state::{Cause, Phase};
use crate::survival::SealError;

/// The answer of most calls here.
pub type Result<T> = std::result::Result<T, Error>;

/// Why kiln could not do what was asked.
#[derive(Clone)]
pub struct Error {
    label: Option<Box<str>>,
    detail: Box<Detail>,
}

#[derive(Clone)]
struct Detail {
    kind: ErrorKind,
    /// Where in a request it went wrong.
    place: Option<String>,
}

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
    /// A program and what it was given do not fit, or the program stopped itself.
    #[error(transparent)]
    Program(#[from] ProgramError),
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
    /// There is no device, and one was needed.
    #[error("no CUDA runtime available")]
    Absent(#[from] Absence),
    /// The platform is there and does not work.
    #[error("{kind} devices cannot be listed")]
    Listing {
        /// Whose devices.
        kind: DeviceKind,
        /// What went wrong.
        #[source]
        cause: kiln_driver::Error,
    },
    /// A device that is listed could not be opened.
    #[error("{} for device {ordinal}", opening(*kind))]
    Context {
        /// What kind of device.
        kind: DeviceKind,
        /// Which one.
        ordinal: u32,
        /// What went wrong.
        #[source]
        cause: kiln_driver::Error,
    },
    /// A block cannot be mapped read-only; nothing was changed.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// No worker process could be started for a device.
    #[error(transparent)]
    Worker(Arc<kiln_isolate::StartError>),
    /// No device answers to that name.
    #[error("there is no {kind} device with {wanted}; there is {}", listed(known))]
    UnknownDevice {
        /// What kind of device.
        kind: DeviceKind,
        /// What was asked for.
        wanted: String,
        /// How many there are; their ordinals count from zero.
        known: usize,
    },
    /// Text that names no device.
    #[error("`{text}` names no device; write an ordinal such as 0, a UUID such as GPU-0123..., or `best`")]
    UnknownSelection {
        /// The text.
        text: String,
    },
    /// Text that names no policy.
    #[error("`{text}` is no policy; write one of off, auto, required, simulate")]
    UnknownPolicy {
        /// The text.
        text: String,
    },
    /// An environment variable holds something it cannot mean.
    #[error("{variable}=`{text}` means nothing; it takes {wanted}")]
    Environment {
        /// The variable.
        variable: &'static str,
        /// What it holds.
        text: String,
        /// What it takes.
        wanted: &'static str,
    },
    /// The process's policy was settled already, as another one.
    #[error(
        "the policy of this process is `{in_force}` already and cannot become `{wanted}`; set it once, before first use"
    )]
    PolicyConflict {
        /// The policy that stays.
        in_force: Policy,
        /// The one that was asked for.
        wanted: Policy,
    },
    /// This process was forked from the one that opened the device, and devices do not survive that.
    #[error(
        "the device was opened before this process was forked; start the process anew (exec) to use a device in it"
    )]
    Forked,
    /// A build step asked for the very thing it builds.
    #[error("the build step asked for what it is to build itself; take the parts it was given")]
    Recursion,
    /// A library is not there.
    #[error(transparent)]
    Library(#[from] MissingLibrary),
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
    /// An error of the caller's own, from a step kiln ran for them.
    #[error(transparent)]
    Other(Arc<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// An error of a kind.
    pub fn new(kind: impl Into<ErrorKind>) -> Self {
        Self { label: None, detail: Box::new(Detail { kind: kind.into(), place: None }) }
    }

    /// An error of the caller's own, to be returned through kiln.
    pub fn other(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::new(ErrorKind::Other(Arc::new(error)))
    }

    /// The same error with the label of the backend that asked; a label that is there already stays.
    #[must_use]
    pub fn labelled(mut self, label: &str) -> Self {
        self.label.get_or_insert_with(|| label.into());
        self
    }

    /// The same error with the place in a request where it went wrong, in words; a place that is there already stays.
    #[must_use]
    pub(crate) fn placed(mut self, place: impl Into<String>) -> Self {
        self.detail.place.get_or_insert_with(|| place.into());
        self
    }

    /// What went wrong.
    pub fn kind(&self) -> &ErrorKind {
        &self.detail.kind
    }

    /// Where in a request it went wrong, such as "kernel `axpy`, parameter 1", where the kind does not say it.
    pub fn place(&self) -> Option<&str> {
        self.detail.place.as_deref()
    }

    /// The label of the backend that asked, if one did.
    pub fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }

    /// The error of the device, if one is behind this.
    pub fn driver(&self) -> Option<&kiln_driver::Error> {
        match self.kind() {
            ErrorKind::Driver(error) => Some(error),
            ErrorKind::Memory(error) => error.driver(),
            ErrorKind::Listing { cause, .. } | ErrorKind::Context { cause, .. } => Some(cause),
            ErrorKind::NotReady { cause, .. } => Some(cause.error()),
            _ => None,
        }
    }

    /// The CUDA code behind it, if there is one.
    pub fn code(&self) -> Option<Code> {
        match self.kind() {
            ErrorKind::Absent(absence) => absence.code(),
            _ => self.driver().and_then(kiln_driver::Error::code),
        }
    }

    /// The driver call that reported it, if one did.
    pub fn call(&self) -> Option<&'static str> {
        self.driver().map(kiln_driver::Error::call)
    }

    /// Whether there simply is no device; nothing is broken.
    pub fn is_absence(&self) -> bool {
        match self.kind() {
            ErrorKind::Absent(_) => true,
            ErrorKind::Worker(error) => error.is_absence(),
            _ => false,
        }
    }

    /// Whether freeing memory may help.
    pub fn is_oom(&self) -> bool {
        match self.kind() {
            ErrorKind::Memory(error) => error.is_oom(),
            _ => self.driver().is_some_and(kiln_driver::Error::is_oom),
        }
    }

    /// Whether the device is lost for good.
    pub fn is_sticky(&self) -> bool {
        match self.kind() {
            ErrorKind::NotReady { .. } => false,
            _ => self.driver().is_some_and(kiln_driver::Error::is_sticky),
        }
    }

    /// Whether the same request may succeed later. A device that could not be listed or opened may answer next time,
    /// unless it is lost.
    pub fn is_retryable(&self) -> bool {
        match self.kind() {
            ErrorKind::StreamsExhausted { .. } | ErrorKind::NotReady { .. } => true,
            ErrorKind::Memory(error) => error.is_retryable(),
            ErrorKind::Worker(error) => error.is_retryable(),
            ErrorKind::Listing { cause, .. } | ErrorKind::Context { cause, .. } => !cause.is_sticky(),
            _ => self.driver().is_some_and(kiln_driver::Error::is_retryable),
        }
    }
}

impl<E: Into<ErrorKind>> From<E> for Error {
    fn from(error: E) -> Self {
        Self::new(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(label) = &self.label {
            write!(f, "{label} backend: ")?;
        }
        if let Some(place) = self.place() {
            write!(f, "{place}: ")?;
        }
        write!(f, "{}", self.kind())?;
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause.filter(|_| f.alternate()) {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:#}")
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(self.kind())
    }
}

impl From<kiln_isolate::StartError> for ErrorKind {
    fn from(error: kiln_isolate::StartError) -> Self {
        Self::Worker(Arc::new(error))
    }
}

fn opening(kind: DeviceKind) -> &'static str {
    match kind {
        DeviceKind::Cuda => "failed to create CUDA context",
        DeviceKind::Simulated => "failed to start the simulation",
    }
}

fn listed(known: &usize) -> String {
    match known {
        0 => "none".into(),
        1 => "one, number 0".into(),
        count => format!("0 to {}", count - 1),
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use kiln_driver::Refusal;

    use super::*;
    use crate::probe::CudaAbsence;

    fn context_failure() -> Error {
        let cause = kiln_driver::Error::out_of_memory("cuDevicePrimaryCtxRetain", 0, None);
        ErrorKind::Context { kind: DeviceKind::Cuda, ordinal: 3, cause }.into()
    }

    #[test]
    fn texts_are_exact_and_the_alternate_form_adds_the_cause() {
        let absent = Error::new(Absence::from(CudaAbsence::NoDevice)).labelled("solver");
        assert_eq!(absent.to_string(), "solver backend: no CUDA runtime available");
        let whole = format!("{absent:#}");
        assert!(
            whole.starts_with("solver backend: no CUDA runtime available: the NVIDIA driver sees no device")
        );
        let context = context_failure().labelled("solver");
        assert_eq!(context.to_string(), "solver backend: failed to create CUDA context for device 3");
        assert!(
            context.source().is_some_and(|cause| cause.to_string().starts_with("cuDevicePrimaryCtxRetain"))
        );
    }

    #[test]
    fn what_lies_below_is_kept() {
        let error = context_failure();
        assert_eq!(
            (error.code(), error.call()),
            (Some(Code::OUT_OF_MEMORY), Some("cuDevicePrimaryCtxRetain"))
        );
        assert!(error.is_oom() && error.is_retryable() && !error.is_absence() && !error.is_sticky());
        let refused = kiln_driver::Error::refused("cuInit", Refusal::Driver(Code::NOT_INITIALIZED));
        let listing = Error::new(ErrorKind::Listing { kind: DeviceKind::Cuda, cause: refused });
        assert_eq!(listing.code(), Some(Code::NOT_INITIALIZED));
        let mismatch =
            Error::new(Absence::from(CudaAbsence::Mismatched { code: Code::SYSTEM_DRIVER_MISMATCH }));
        assert_eq!(mismatch.code(), Some(Code::SYSTEM_DRIVER_MISMATCH));
        assert!(mismatch.is_absence() && !mismatch.is_retryable());
    }

    #[test]
    fn the_first_label_stays() {
        assert_eq!(context_failure().labelled("inner").labelled("outer").label(), Some("inner"));
    }
}
