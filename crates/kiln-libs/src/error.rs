//! Why a library operation was not queued.

use kiln_driver::Refusal;
use kiln_operation::{Geqrf, Gesvd, Getrf, Getrs, OperationError, Orgqr, Ormqr, Potrf, Potrs, Syevd};
use kiln_runtime::DeviceRuntime;
use kiln_runtime::internal::told_of_loss;

use crate::solve_failure::SolveFailure;

/// The operation of an error about a kernel, which does not know the call that it is for.
pub(crate) const UNNAMED: &str = "kernel";

/// Why a library operation was not queued, in which case nothing was changed, or why it has no result.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LibraryError {
    /// An argument has no meaning for the operation.
    #[error("{operation}: {what}; {hint}")]
    Argument {
        /// The operation, such as `rand.normal`.
        operation: &'static str,
        /// What is wrong.
        what: String,
        /// What to do.
        hint: &'static str,
    },
    /// The operation ran, and its matrix has no such factors, solution or values.
    #[error("{operation}: {failure}; {}", .failure.hint())]
    Solve {
        /// The operation, such as `solve.cholesky`.
        operation: &'static str,
        /// What the device found.
        failure: SolveFailure,
    },
    /// The operation ran on a batch, and at least one of its matrices has no such factors.
    #[error("{operation}: matrix {matrix} of {count}: {failure} ({failed} failed); {}", .failure.hint())]
    SolveBatch {
        /// The operation, such as `solve.cholesky_batched`.
        operation: &'static str,
        /// The first such matrix, counted from 0.
        matrix: usize,
        /// How many matrices the batch has.
        count: usize,
        /// How many of them have no such factors.
        failed: usize,
        /// What the device found in the first.
        failure: SolveFailure,
    },
    /// What the runtime answered.
    #[error(transparent)]
    Runtime(#[from] kiln_runtime::Error),
}

impl From<OperationError> for LibraryError {
    fn from(error: OperationError) -> Self {
        match error {
            OperationError::Shape { operation, what, hint } => Self::argument(operation, what, hint),
            OperationError::Operand { operation, operand, what, hint } => {
                Self::argument(operation, format!("`{operand}` {what}"), hint)
            }
            other => {
                Self::argument("operation", other.to_string(), "describe it with the types of this crate")
            }
        }
    }
}

/// So that a function that answers with [`kiln_runtime::Error`] can use `?` on library calls. What the runtime answered stays what it was; the rest can be
/// found with [`downcast_ref`](kiln_runtime::Error::downcast_ref).
impl From<LibraryError> for kiln_runtime::Error {
    fn from(error: LibraryError) -> Self {
        match error {
            LibraryError::Runtime(error) => error,
            error => Self::other(error),
        }
    }
}

impl LibraryError {
    pub(crate) fn argument(operation: &'static str, what: impl Into<String>, hint: &'static str) -> Self {
        Self::Argument { operation: method_name(operation), what: what.into(), hint }
    }

    /// What the runtime answered, with the call that it was about. A place that names the call already stays.
    #[cold]
    pub(crate) fn told_of(self, call: &'static str) -> Self {
        match self {
            Self::Runtime(error) if !error.place().is_some_and(|place| place.starts_with(call)) => {
                Self::Runtime(error.within(call))
            }
            Self::Argument { operation: UNNAMED, what, hint } => {
                Self::Argument { operation: call, what, hint }
            }
            told => told,
        }
    }

    /// What a runtime answered to work that was waited for, with the call, and with what to do where the device is lost for good. There is no runtime where it
    /// was dropped meanwhile.
    #[cold]
    pub(crate) fn told_of_wait(self, call: &'static str, gpu: Option<&DeviceRuntime>) -> Self {
        match (self, gpu) {
            (Self::Runtime(error), Some(gpu)) if error.is_sticky() => {
                Self::Runtime(told_of_loss(gpu, error)).told_of(call)
            }
            (told, _) => told.told_of(call),
        }
    }

    /// The runtime's error, if it was one.
    pub fn runtime(&self) -> Option<&kiln_runtime::Error> {
        match self {
            Self::Runtime(error) => Some(error),
            Self::Argument { .. } | Self::Solve { .. } | Self::SolveBatch { .. } => None,
        }
    }

    /// What the device found in a matrix, of a batch in the first that failed, if that is why there is no result.
    pub fn solve_failure(&self) -> Option<SolveFailure> {
        match self {
            Self::Solve { failure, .. } | Self::SolveBatch { failure, .. } => Some(*failure),
            _ => None,
        }
    }

    /// The library that cannot be used, if that is why: it is missing, too old or damaged, or it has no algorithm for the operation.
    pub fn library(&self) -> Option<&'static str> {
        match self.runtime()?.driver().and_then(kiln_driver::Error::refusal) {
            Some(Refusal::Library { library, .. }) => Some(library),
            _ => None,
        }
    }
}

/// The method that a caller called, where the operation has the name of a routine of LAPACK.
pub(crate) fn method_name(operation: &'static str) -> &'static str {
    match operation {
        Potrf::NAME => "solve.cholesky",
        Potrs::NAME => "solve.cholesky_solve",
        Getrf::NAME => "solve.lu",
        Getrs::NAME => "solve.lu_solve",
        Geqrf::NAME => "solve.qr",
        Ormqr::NAME => "solve.apply_q",
        Orgqr::NAME => "solve.form_q",
        Syevd::NAME => "solve.eigenvalues",
        Gesvd::NAME => "solve.svd",
        _ => operation,
    }
}
