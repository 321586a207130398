//! Names and texts of result codes.

use std::ffi::{CString, c_char, c_int};
use std::sync::OnceLock;

use cudarc::driver::sys::cudaError_enum as E;
use kiln_driver::Code;

use crate::boundary::Answer;
use crate::caller_memory::Out;

/// All codes that have a name.
const CODES: &[E] = &[
    E::CUDA_SUCCESS,
    E::CUDA_ERROR_INVALID_VALUE,
    E::CUDA_ERROR_OUT_OF_MEMORY,
    E::CUDA_ERROR_NOT_INITIALIZED,
    E::CUDA_ERROR_DEINITIALIZED,
    E::CUDA_ERROR_PROFILER_DISABLED,
    E::CUDA_ERROR_PROFILER_NOT_INITIALIZED,
    E::CUDA_ERROR_PROFILER_ALREADY_STARTED,
    E::CUDA_ERROR_PROFILER_ALREADY_STOPPED,
    E::CUDA_ERROR_STUB_LIBRARY,
    E::CUDA_ERROR_DEVICE_UNAVAILABLE,
    E::CUDA_ERROR_NO_DEVICE,
    E::CUDA_ERROR_INVALID_DEVICE,
    E::CUDA_ERROR_DEVICE_NOT_LICENSED,
    E::CUDA_ERROR_INVALID_IMAGE,
    E::CUDA_ERROR_INVALID_CONTEXT,
    E::CUDA_ERROR_CONTEXT_ALREADY_CURRENT,
    E::CUDA_ERROR_MAP_FAILED,
    E::CUDA_ERROR_UNMAP_FAILED,
    E::CUDA_ERROR_ARRAY_IS_MAPPED,
    E::CUDA_ERROR_ALREADY_MAPPED,
    E::CUDA_ERROR_NO_BINARY_FOR_GPU,
    E::CUDA_ERROR_ALREADY_ACQUIRED,
    E::CUDA_ERROR_NOT_MAPPED,
    E::CUDA_ERROR_NOT_MAPPED_AS_ARRAY,
    E::CUDA_ERROR_NOT_MAPPED_AS_POINTER,
    E::CUDA_ERROR_ECC_UNCORRECTABLE,
    E::CUDA_ERROR_UNSUPPORTED_LIMIT,
    E::CUDA_ERROR_CONTEXT_ALREADY_IN_USE,
    E::CUDA_ERROR_PEER_ACCESS_UNSUPPORTED,
    E::CUDA_ERROR_INVALID_PTX,
    E::CUDA_ERROR_INVALID_GRAPHICS_CONTEXT,
    E::CUDA_ERROR_NVLINK_UNCORRECTABLE,
    E::CUDA_ERROR_JIT_COMPILER_NOT_FOUND,
    E::CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
    E::CUDA_ERROR_JIT_COMPILATION_DISABLED,
    E::CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY,
    E::CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC,
    E::CUDA_ERROR_INVALID_SOURCE,
    E::CUDA_ERROR_FILE_NOT_FOUND,
    E::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND,
    E::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED,
    E::CUDA_ERROR_OPERATING_SYSTEM,
    E::CUDA_ERROR_INVALID_HANDLE,
    E::CUDA_ERROR_ILLEGAL_STATE,
    E::CUDA_ERROR_LOSSY_QUERY,
    E::CUDA_ERROR_NOT_FOUND,
    E::CUDA_ERROR_NOT_READY,
    E::CUDA_ERROR_ILLEGAL_ADDRESS,
    E::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
    E::CUDA_ERROR_LAUNCH_TIMEOUT,
    E::CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING,
    E::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED,
    E::CUDA_ERROR_PEER_ACCESS_NOT_ENABLED,
    E::CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE,
    E::CUDA_ERROR_CONTEXT_IS_DESTROYED,
    E::CUDA_ERROR_ASSERT,
    E::CUDA_ERROR_TOO_MANY_PEERS,
    E::CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
    E::CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
    E::CUDA_ERROR_HARDWARE_STACK_ERROR,
    E::CUDA_ERROR_ILLEGAL_INSTRUCTION,
    E::CUDA_ERROR_MISALIGNED_ADDRESS,
    E::CUDA_ERROR_INVALID_ADDRESS_SPACE,
    E::CUDA_ERROR_INVALID_PC,
    E::CUDA_ERROR_LAUNCH_FAILED,
    E::CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
    E::CUDA_ERROR_NOT_PERMITTED,
    E::CUDA_ERROR_NOT_SUPPORTED,
    E::CUDA_ERROR_SYSTEM_NOT_READY,
    E::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH,
    E::CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE,
    E::CUDA_ERROR_MPS_CONNECTION_FAILED,
    E::CUDA_ERROR_MPS_RPC_FAILURE,
    E::CUDA_ERROR_MPS_SERVER_NOT_READY,
    E::CUDA_ERROR_MPS_MAX_CLIENTS_REACHED,
    E::CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED,
    E::CUDA_ERROR_MPS_CLIENT_TERMINATED,
    E::CUDA_ERROR_CDP_NOT_SUPPORTED,
    E::CUDA_ERROR_CDP_VERSION_MISMATCH,
    E::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
    E::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
    E::CUDA_ERROR_STREAM_CAPTURE_MERGE,
    E::CUDA_ERROR_STREAM_CAPTURE_UNMATCHED,
    E::CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
    E::CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
    E::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
    E::CUDA_ERROR_CAPTURED_EVENT,
    E::CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
    E::CUDA_ERROR_TIMEOUT,
    E::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE,
    E::CUDA_ERROR_EXTERNAL_DEVICE,
    E::CUDA_ERROR_INVALID_CLUSTER_SIZE,
    E::CUDA_ERROR_FUNCTION_NOT_LOADED,
    E::CUDA_ERROR_INVALID_RESOURCE_TYPE,
    E::CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
    E::CUDA_ERROR_UNKNOWN,
];

/// Codes of newer drivers.
const NEWER: &[(i32, &str)] = &[
    (36, "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER"),
    (226, "CUDA_ERROR_CONTAINED"),
    (721, "CUDA_ERROR_TENSOR_MEMORY_LEAK"),
    (916, "CUDA_ERROR_KEY_ROTATION"),
];

/// A code with its name and text.
struct Entry {
    code: i32,
    name: CString,
    text: CString,
}

fn entries() -> &'static [Entry] {
    static ENTRIES: OnceLock<Vec<Entry>> = OnceLock::new();
    let known = CODES.iter().map(|code| (*code as i32, format!("{code:?}")));
    let newer = NEWER.iter().map(|(code, name)| (*code, (*name).to_owned()));
    ENTRIES.get_or_init(|| known.chain(newer).filter_map(|(code, name)| Entry::new(code, name)).collect())
}

impl Entry {
    fn new(code: i32, name: String) -> Option<Self> {
        // The words of the name say what happened.
        let words = name.strip_prefix("CUDA_ERROR_").unwrap_or("no error").replace('_', " ").to_lowercase();
        Some(Self { code, name: CString::new(name).ok()?, text: CString::new(words).ok()? })
    }
}

fn look_up(
    code: c_int,
    out: Out<*const c_char>,
    text_of: impl Fn(&'static Entry) -> &'static CString,
) -> Answer {
    out.check()?;
    match entries().iter().find(|entry| entry.code == code) {
        Some(entry) => out.set(text_of(entry).as_ptr()),
        None => {
            out.set(std::ptr::null())?;
            Err(Code::INVALID_VALUE)
        }
    }
}

driver_api! {
    fn cuGetErrorName(code: c_int, out: Out<*const c_char>) {
        look_up(code, out, |entry| &entry.name)
    }

    fn cuGetErrorString(code: c_int, out: Out<*const c_char>) {
        look_up(code, out, |entry| &entry.text)
    }
}
