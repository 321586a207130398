//! The entry points of NVRTC, looked up one by one, as those of libcuda are.

use std::ffi::{c_char, c_int};

use crate::dynamic_library::Library;
use cudarc::nvrtc::sys;

/// What NVRTC answers: 0 is success.
pub(super) type Status = c_int;

/// A handle of NVRTC.
pub(super) type Program = sys::nvrtcProgram;

/// The answer that means the source has errors.
pub(super) const COMPILATION: Status = 6;

macro_rules! api {
    ($($name:ident = $symbol:literal ($($argument:ty),* $(,)?) -> $answer:ty;)*) => {
        /// The entry points kiln calls.
        pub(super) struct Api {
            $(pub(super) $name: unsafe extern "C" fn($($argument),*) -> $answer,)*
        }

        impl Api {
            /// Looks all of them up; the error is the first one that is missing.
            pub(super) fn resolve(library: &Library) -> Result<Self, &'static str> {
                Ok(Self {
                    // SAFETY: the signature is the one `nvrtc.h` declares for this symbol, and the library is never unloaded.
                    $($name: *unsafe { library.get($symbol) }.map_err(|_| $symbol)?,)*
                })
            }
        }
    };
}

api! {
    version = "nvrtcVersion"(*mut c_int, *mut c_int) -> Status;
    architecture_count = "nvrtcGetNumSupportedArchs"(*mut c_int) -> Status;
    architectures = "nvrtcGetSupportedArchs"(*mut c_int) -> Status;
    error_text = "nvrtcGetErrorString"(Status) -> *const c_char;
    create = "nvrtcCreateProgram"(
        *mut Program, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char,
    ) -> Status;
    destroy = "nvrtcDestroyProgram"(*mut Program) -> Status;
    add_name = "nvrtcAddNameExpression"(Program, *const c_char) -> Status;
    compile = "nvrtcCompileProgram"(Program, c_int, *const *const c_char) -> Status;
    log_size = "nvrtcGetProgramLogSize"(Program, *mut usize) -> Status;
    log = "nvrtcGetProgramLog"(Program, *mut c_char) -> Status;
    ptx_size = "nvrtcGetPTXSize"(Program, *mut usize) -> Status;
    ptx = "nvrtcGetPTX"(Program, *mut c_char) -> Status;
    cubin_size = "nvrtcGetCUBINSize"(Program, *mut usize) -> Status;
    cubin = "nvrtcGetCUBIN"(Program, *mut c_char) -> Status;
    lowered_name = "nvrtcGetLoweredName"(Program, *const c_char, *mut *const c_char) -> Status;
}
