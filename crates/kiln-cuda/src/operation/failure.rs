//! A call of a library that did not succeed.

use cudarc::driver::sys;
use kiln_driver::{Code, Error, Refusal};

use crate::libcuda_symbols::{Api, Status};
use crate::libraries::LibraryKind;

/// A call of a library that did not succeed.
#[derive(Clone, Debug)]
pub(crate) struct LibraryFailure {
    pub(super) library: LibraryKind,
    pub(super) call: &'static str,
    /// What the library answered.
    pub(super) status: i32,
    /// What the library says beyond that, if it says anything.
    pub(super) detail: String,
}

/// Stands for the status where a library gave none; the detail says what happened.
pub(super) const NO_ANSWER: i32 = i32::MIN;

/// What both cuBLAS libraries answer if they cannot do what is asked.
const CUBLAS_NOT_SUPPORTED: i32 = 15;

/// `CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED`.
const CUDNN_DEVICE_ALLOCATION_FAILED: i32 = 4004;

impl LibraryFailure {
    /// Success, or the failure.
    pub(super) fn check(library: LibraryKind, call: &'static str, status: i32) -> Result<(), Self> {
        if status == 0 { Ok(()) } else { Err(Self { library, call, status, detail: String::new() }) }
    }

    /// Whether memory is out.
    fn is_oom(&self) -> bool {
        match self.library {
            LibraryKind::Cufft | LibraryKind::Cusolver | LibraryKind::Cusparse => self.status == 2,
            LibraryKind::Cudnn => self.status == CUDNN_DEVICE_ALLOCATION_FAILED,
            LibraryKind::Nccl | LibraryKind::Cupti => false,
            _ => self.status == 3,
        }
    }

    /// Whether cuBLASLt cannot do what is asked.
    pub(super) fn is_unsupported(&self) -> bool {
        self.library == LibraryKind::CublasLt && self.status == CUBLAS_NOT_SUPPORTED
    }

    /// The status of the driver behind it: the fault of the device if it is lost, otherwise a code that says that the call was not accepted.
    pub(crate) fn status(&self, api: &Api, stream: sys::CUstream) -> Status {
        if self.is_oom() {
            return Code::OUT_OF_MEMORY.0;
        }
        // SAFETY: the caller has the stream pinned.
        let asked = Code(unsafe { (api.stream_query)(stream) });
        if asked.is_sticky() { asked.0 } else { Code::INVALID_VALUE.0 }
    }

    /// In words, with the operation that was to be queued or prepared.
    pub(crate) fn error(&self, call: &'static str, operation: &str) -> Error {
        if self.is_oom() {
            return Error::out_of_memory(call, 0, None);
        }
        if self.status == NO_ANSWER {
            let why = format!("{operation} is not done: {}", self.detail);
            return Error::refused(call, Refusal::Library { library: self.library.name(), why });
        }
        let mut why = format!("{} answered {} for {operation}", self.call, self.status_text());
        if !self.detail.is_empty() {
            why = format!("{why}: {}", self.detail);
        }
        Error::refused(call, Refusal::Library { library: self.library.name(), why })
    }

    /// In words, for a message that names the operation elsewhere.
    pub(super) fn words(&self) -> String {
        format!("{} answered {}: {}", self.call, self.status_text(), self.detail)
    }

    fn status_text(&self) -> String {
        let name = match self.library {
            LibraryKind::Cufft => cufft_name(self.status),
            LibraryKind::Cusolver => cusolver_name(self.status),
            LibraryKind::Cusparse => cusparse_name(self.status),
            // Its name is part of the detail.
            LibraryKind::Cudnn => None,
            LibraryKind::Nccl => nccl_name(self.status),
            _ => cublas_name(self.status),
        };
        match name {
            Some(name) => format!("{name} ({})", self.status),
            None => format!("status {}", self.status),
        }
    }
}

fn cufft_name(status: i32) -> Option<&'static str> {
    Some(match status {
        1 => "CUFFT_INVALID_PLAN",
        3 => "CUFFT_INVALID_TYPE",
        4 => "CUFFT_INVALID_VALUE",
        5 => "CUFFT_INTERNAL_ERROR",
        6 => "CUFFT_EXEC_FAILED",
        7 => "CUFFT_SETUP_FAILED",
        8 => "CUFFT_INVALID_SIZE",
        16 => "CUFFT_NOT_SUPPORTED",
        _ => return None,
    })
}

fn cublas_name(status: i32) -> Option<&'static str> {
    Some(match status {
        1 => "CUBLAS_STATUS_NOT_INITIALIZED",
        7 => "CUBLAS_STATUS_INVALID_VALUE",
        8 => "CUBLAS_STATUS_ARCH_MISMATCH",
        11 => "CUBLAS_STATUS_MAPPING_ERROR",
        13 => "CUBLAS_STATUS_EXECUTION_FAILED",
        14 => "CUBLAS_STATUS_INTERNAL_ERROR",
        15 => "CUBLAS_STATUS_NOT_SUPPORTED",
        _ => return None,
    })
}

fn cusolver_name(status: i32) -> Option<&'static str> {
    Some(match status {
        1 => "CUSOLVER_STATUS_NOT_INITIALIZED",
        3 => "CUSOLVER_STATUS_INVALID_VALUE",
        4 => "CUSOLVER_STATUS_ARCH_MISMATCH",
        5 => "CUSOLVER_STATUS_MAPPING_ERROR",
        6 => "CUSOLVER_STATUS_EXECUTION_FAILED",
        7 => "CUSOLVER_STATUS_INTERNAL_ERROR",
        8 => "CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED",
        9 => "CUSOLVER_STATUS_NOT_SUPPORTED",
        31 => "CUSOLVER_STATUS_INVALID_WORKSPACE",
        _ => return None,
    })
}

fn cusparse_name(status: i32) -> Option<&'static str> {
    Some(match status {
        1 => "CUSPARSE_STATUS_NOT_INITIALIZED",
        3 => "CUSPARSE_STATUS_INVALID_VALUE",
        4 => "CUSPARSE_STATUS_ARCH_MISMATCH",
        5 => "CUSPARSE_STATUS_MAPPING_ERROR",
        6 => "CUSPARSE_STATUS_EXECUTION_FAILED",
        7 => "CUSPARSE_STATUS_INTERNAL_ERROR",
        8 => "CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED",
        10 => "CUSPARSE_STATUS_NOT_SUPPORTED",
        11 => "CUSPARSE_STATUS_INSUFFICIENT_RESOURCES",
        _ => return None,
    })
}

fn nccl_name(status: i32) -> Option<&'static str> {
    Some(match status {
        1 => "ncclUnhandledCudaError",
        2 => "ncclSystemError",
        3 => "ncclInternalError",
        4 => "ncclInvalidArgument",
        5 => "ncclInvalidUsage",
        6 => "ncclRemoteError",
        7 => "ncclInProgress",
        _ => return None,
    })
}
