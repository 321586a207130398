//! The one error of this crate, and what it is made of.
//!
//! An error is vocabulary: each part of the runtime has its enum in a separate file here, below the code that answers with it.
//!
//! It keeps what a caller needs to decide (the kind, the CUDA code, the call, the label of the backend that asked) and
//! answers by predicates. A label is put on at the edge where a backend asked, whatever the kind. The plain text is one
//! line about what went wrong; the alternate form (`{:#}`) adds the causes below it.

mod code;
mod graph;
mod host_memory;
mod invalid_findings_setting;
mod kind;
mod misuse;
mod predicates;
mod read_only;
mod recording;
mod similar_names;
mod stale;

use std::fmt;
use std::sync::Arc;

use kiln_driver::{Code, DeviceFinding};
use kiln_probe::Absence;

pub use code::CodeError;
pub use graph::GraphError;
pub use host_memory::OutOfHostMemory;
pub use invalid_findings_setting::{FINDINGS_VARIABLE, UnknownFindings};
pub use kind::ErrorKind;
pub use misuse::Misuse;
pub use read_only::SealError;
pub use recording::{RecordingError, TRACE_VARIABLE};
pub use stale::Stale;

pub(crate) use code::explained;
pub(crate) use similar_names::nearest;

/// The answer of most calls here.
pub type Result<T> = std::result::Result<T, Error>;

/// Why kiln could not do what was asked.
///
/// Predicates answer what a caller decides on: is there [no device](Self::is_absence), is [memory](Self::is_oom) short, was
/// the device [lost](Self::is_lost), [for good](Self::is_sticky), and may the [same request](Self::is_retryable) succeed later.
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
    /// What work was told that failed before, where this follows from it.
    because: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// An error of a kind.
    pub fn new(kind: impl Into<ErrorKind>) -> Self {
        Self { label: None, detail: Box::new(Detail { kind: kind.into(), place: None, because: None }) }
    }

    /// An error of any type, to be returned through kiln; [`downcast_ref`](Self::downcast_ref) gets it back.
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
    pub fn placed(mut self, place: impl Into<String>) -> Self {
        self.detail.place.get_or_insert_with(|| place.into());
        self
    }

    /// The same error as a part of a larger request: its place in words, before a place that is there already.
    #[must_use]
    pub fn within(mut self, place: impl Into<String>) -> Self {
        let place = place.into();
        self.detail.place = Some(match self.detail.place.take() {
            Some(inner) => format!("{place}: {inner}"),
            None => place,
        });
        self
    }

    /// The same error, which follows from what other work was told; [`downcast_ref`](Self::downcast_ref) finds that.
    #[must_use]
    pub(crate) fn because(mut self, told: Option<Arc<dyn std::error::Error + Send + Sync>>) -> Self {
        self.detail.because = told;
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
            ErrorKind::Probe(error) => error.driver(),
            ErrorKind::NotReady { cause, .. } | ErrorKind::Faulted { cause } => Some(cause.error()),
            ErrorKind::Reopen { cause, .. } => cause.driver(),
            _ => None,
        }
    }

    /// The mistake that the checks of a simulated device found, if that is what failed.
    ///
    /// ```
    /// use kiln::DeviceRuntime;
    ///
    /// let gpu = DeviceRuntime::simulated(1)?;
    /// let error = gpu.allocate::<u32>(4)?.download().unwrap_err(); // was never written
    /// let finding = error.finding().expect("a mistake in the program");
    /// assert!(finding.text.contains("never written"));
    /// # Ok::<(), kiln::Error>(())
    /// ```
    pub fn finding(&self) -> Option<&DeviceFinding> {
        match self.kind() {
            ErrorKind::Finding(error) => error.finding(),
            _ => None,
        }
    }

    /// The error of a type of the caller's own that was put in with [`other`](Self::other), or of a crate above this one,
    /// such as `kiln::program::ProgramError`. Where work was [ended](Stale::NotWritten) for such an error, who reads what it was to write finds
    /// the same.
    ///
    /// ```
    /// use kiln::Error;
    ///
    /// let error = Error::other("x".parse::<u32>().unwrap_err()).labelled("solver");
    /// assert!(error.downcast_ref::<std::num::ParseIntError>().is_some());
    /// assert!(error.downcast_ref::<std::fmt::Error>().is_none());
    /// ```
    pub fn downcast_ref<E: std::error::Error + 'static>(&self) -> Option<&E> {
        match self.kind() {
            ErrorKind::Other(error) => error.downcast_ref(),
            _ => self.detail.because.as_ref()?.downcast_ref(),
        }
    }

    /// Why there is no device, where nothing is broken.
    pub fn absence(&self) -> Option<&Absence> {
        match self.kind() {
            ErrorKind::Probe(error) => error.absence(),
            ErrorKind::Reopen { cause, .. } => cause.absence(),
            _ => None,
        }
    }

    /// The CUDA code behind it, if there is one.
    pub fn code(&self) -> Option<Code> {
        match self.absence() {
            Some(absence) => absence.code(),
            None => self.driver().and_then(kiln_driver::Error::code),
        }
    }

    /// The driver call that reported it, if one did.
    pub fn call(&self) -> Option<&'static str> {
        self.driver().map(kiln_driver::Error::call)
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
        let mut told = self.kind().to_string();
        f.write_str(&told)?;
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause.filter(|_| f.alternate()) {
            let text = error.to_string();
            // A cause may say what is below it.
            if !told.contains(&text) {
                write!(f, ": {text}")?;
                told.push_str(&text);
            }
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
        match (std::error::Error::source(self.kind()), &self.detail.because) {
            (Some(source), _) => Some(source),
            (None, Some(told)) => Some(&**told),
            (None, None) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use kiln_driver::{DeviceKind, Refusal};
    use kiln_probe::{CudaAbsence, ProbeError};

    use super::*;

    fn context_failure() -> Error {
        let cause = kiln_driver::Error::out_of_memory("cuDevicePrimaryCtxRetain", 0, None);
        ProbeError::Context { kind: DeviceKind::Cuda, ordinal: 3, cause }.into()
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
        let listing = Error::new(ProbeError::Listing { kind: DeviceKind::Cuda, cause: refused });
        assert_eq!(listing.code(), Some(Code::NOT_INITIALIZED));
        let mismatch =
            Error::new(Absence::from(CudaAbsence::Mismatched { code: Code::SYSTEM_DRIVER_MISMATCH }));
        assert_eq!(mismatch.code(), Some(Code::SYSTEM_DRIVER_MISMATCH));
        assert!(mismatch.is_absence() && !mismatch.is_retryable());
    }

    #[test]
    fn a_larger_request_comes_before_the_place() {
        let error = context_failure().within("blas.scal");
        assert_eq!(error.place(), Some("blas.scal"));
        let error = context_failure().placed("kernel `scale`").within("blas.scal").placed("elsewhere");
        assert_eq!(error.place(), Some("blas.scal: kernel `scale`"));
    }

    #[test]
    fn the_first_label_stays() {
        assert_eq!(context_failure().labelled("inner").labelled("outer").label(), Some("inner"));
    }
}
