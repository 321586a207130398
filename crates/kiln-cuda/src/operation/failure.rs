//! A call of a library that did not succeed.

use cudarc::driver::sys;
use kiln_driver::{Code, Error, Refusal};

use crate::api::{Api, Status};
use crate::libraries::LibraryKind;

/// A call of a library that did not succeed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LibraryFailure {
    pub(super) library: LibraryKind,
    pub(super) call: &'static str,
    /// What the library answered.
    pub(super) status: i32,
}

/// What both cuBLAS libraries answer if memory is out, and if they cannot do what is asked.
const CUBLAS_ALLOC_FAILED: i32 = 3;
const CUBLAS_NOT_SUPPORTED: i32 = 15;
const CUFFT_ALLOC_FAILED: i32 = 2;

impl LibraryFailure {
    /// Success, or the failure.
    pub(super) fn check(library: LibraryKind, call: &'static str, status: i32) -> Result<(), Self> {
        if status == 0 { Ok(()) } else { Err(Self { library, call, status }) }
    }

    /// Whether memory is out.
    fn is_oom(&self) -> bool {
        match self.library {
            LibraryKind::Cufft => self.status == CUFFT_ALLOC_FAILED,
            _ => self.status == CUBLAS_ALLOC_FAILED,
        }
    }

    /// Whether the library cannot do what is asked.
    pub(super) fn is_unsupported(&self) -> bool {
        self.library != LibraryKind::Cufft && self.status == CUBLAS_NOT_SUPPORTED
    }

    /// The status of the driver behind it: the fault of the device if it is lost, otherwise a code that says that the call was not accepted.
    pub(super) fn status(&self, api: &Api, stream: sys::CUstream) -> Status {
        if self.is_oom() {
            return Code::OUT_OF_MEMORY.0;
        }
        // SAFETY: the caller has the stream pinned.
        let asked = Code(unsafe { (api.stream_query)(stream) });
        if asked.is_sticky() { asked.0 } else { Code::INVALID_VALUE.0 }
    }

    /// In words, with the operation that was to be queued or prepared.
    pub(super) fn error(&self, call: &'static str, operation: &str) -> Error {
        if self.is_oom() {
            return Error::out_of_memory(call, 0, None);
        }
        let why = format!("{} answered {} for {operation}", self.call, self.status_text());
        Error::refused(call, Refusal::Library { library: self.library.name(), why })
    }

    fn status_text(&self) -> String {
        let name = match (self.library, self.status) {
            (LibraryKind::Cufft, 1) => "CUFFT_INVALID_PLAN",
            (LibraryKind::Cufft, 3) => "CUFFT_INVALID_TYPE",
            (LibraryKind::Cufft, 4) => "CUFFT_INVALID_VALUE",
            (LibraryKind::Cufft, 5) => "CUFFT_INTERNAL_ERROR",
            (LibraryKind::Cufft, 6) => "CUFFT_EXEC_FAILED",
            (LibraryKind::Cufft, 7) => "CUFFT_SETUP_FAILED",
            (LibraryKind::Cufft, 8) => "CUFFT_INVALID_SIZE",
            (LibraryKind::Cufft, 16) => "CUFFT_NOT_SUPPORTED",
            (LibraryKind::Cufft, _) => return format!("status {}", self.status),
            (_, 1) => "CUBLAS_STATUS_NOT_INITIALIZED",
            (_, 7) => "CUBLAS_STATUS_INVALID_VALUE",
            (_, 8) => "CUBLAS_STATUS_ARCH_MISMATCH",
            (_, 11) => "CUBLAS_STATUS_MAPPING_ERROR",
            (_, 13) => "CUBLAS_STATUS_EXECUTION_FAILED",
            (_, 14) => "CUBLAS_STATUS_INTERNAL_ERROR",
            (_, 15) => "CUBLAS_STATUS_NOT_SUPPORTED",
            (_, status) => return format!("status {status}"),
        };
        format!("{name} ({})", self.status)
    }
}
