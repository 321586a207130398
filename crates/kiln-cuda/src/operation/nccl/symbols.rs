//! The entry points of NCCL, and what they take.

use std::ffi::{c_char, c_int, c_uint, c_void};

use cudarc::driver::sys::CUstream;
use kiln_operation::CommunicatorId;

use crate::libraries::LibraryKind;
use crate::operation::symbol_lookup::entry_points;

/// `ncclUniqueId`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct UniqueId(pub(super) [u8; CommunicatorId::BYTES]);

/// `ncclConfig_t` of version 2.18. Newer versions take it and use their defaults for what is not there.
#[repr(C)]
pub(super) struct NcclConfig {
    size: usize,
    magic: c_uint,
    version: c_uint,
    blocking: c_int,
    cga_cluster_size: c_int,
    min_ctas: c_int,
    max_ctas: c_int,
    net_name: *const c_char,
    split_share: c_int,
}

impl NcclConfig {
    /// Calls return when they are done.
    pub(super) fn blocking() -> Self {
        /// `NCCL_CONFIG_UNDEF_INT`.
        const UNDEFINED: c_int = c_int::MIN;
        Self {
            size: size_of::<Self>(),
            magic: 0xcafe_beef,
            version: 21_800,
            blocking: 1,
            cga_cluster_size: UNDEFINED,
            min_ctas: UNDEFINED,
            max_ctas: UNDEFINED,
            net_name: std::ptr::null(),
            split_share: UNDEFINED,
        }
    }
}

type Comm = *mut c_void;
type From = *const c_void;
type To = *mut c_void;

entry_points! {
    /// The entry points of NCCL.
    NcclApi of LibraryKind::Nccl => {
        version = "ncclGetVersion"(*mut c_int);
        unique_id = "ncclGetUniqueId"(*mut UniqueId);
        error_string = "ncclGetErrorString"(c_int) -> *const c_char;
        last_error = "ncclGetLastError"(Comm) -> *const c_char;
        init_rank = "ncclCommInitRankConfig"(*mut Comm, c_int, UniqueId, c_int, *mut NcclConfig);
        async_error = "ncclCommGetAsyncError"(Comm, *mut c_int);
        abort = "ncclCommAbort"(Comm);
        group_start = "ncclGroupStart"();
        group_end = "ncclGroupEnd"();
        all_reduce = "ncclAllReduce"(From, To, usize, c_int, c_int, Comm, CUstream);
        reduce = "ncclReduce"(From, To, usize, c_int, c_int, c_int, Comm, CUstream);
        broadcast = "ncclBroadcast"(From, To, usize, c_int, c_int, Comm, CUstream);
        all_gather = "ncclAllGather"(From, To, usize, c_int, Comm, CUstream);
        reduce_scatter = "ncclReduceScatter"(From, To, usize, c_int, c_int, Comm, CUstream);
        send = "ncclSend"(From, usize, c_int, c_int, Comm, CUstream);
        recv = "ncclRecv"(To, usize, c_int, c_int, Comm, CUstream);
    }
}
