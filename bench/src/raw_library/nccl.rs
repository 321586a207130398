//! All-reduces by NCCL.

use std::ffi::c_void;
use std::ptr;

use cudarc::driver::sys;
use kiln_cuda::LibraryKind;

use super::{check, entry_points};
use crate::Failure;
use crate::raw_driver::Raw;

type Comm = *mut c_void;

/// `ncclUniqueId`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct RawId(pub(crate) [u8; Self::BYTES]);

impl RawId {
    pub(crate) const BYTES: usize = 128;

    /// A new one.
    pub(crate) fn new() -> Result<Self, Failure> {
        let (api, mut id) = (NcclApi::load()?, Self([0; Self::BYTES]));
        // SAFETY: the out-parameter is a live local of the size that NCCL declares.
        check("ncclGetUniqueId", unsafe { (api.unique_id)(&mut id) })?;
        Ok(id)
    }
}

/// `ncclConfig_t` of version 2.18, which newer ones take.
#[repr(C)]
struct Config {
    size: usize,
    magic: u32,
    version: u32,
    blocking: i32,
    numbers: [i32; 3],
    net_name: *const i8,
    split_share: i32,
}

entry_points! {
    NcclApi of LibraryKind::Nccl => {
        version = "ncclGetVersion"(*mut i32);
        unique_id = "ncclGetUniqueId"(*mut RawId);
        init = "ncclCommInitRankConfig"(*mut Comm, i32, RawId, i32, *mut Config);
        state = "ncclCommGetAsyncError"(Comm, *mut i32);
        group_start = "ncclGroupStart"();
        group_end = "ncclGroupEnd"();
        all_reduce = "ncclAllReduce"(*const c_void, *mut c_void, usize, i32, i32, Comm, sys::CUstream);
    }
}

/// `NCCL_CONFIG_UNDEF_INT`.
const UNDEFINED: i32 = i32::MIN;
/// `ncclInProgress`.
const IN_PROGRESS: i32 = 7;
/// `ncclFloat32` and `ncclSum`.
const F32: i32 = 7;
const SUM: i32 = 0;

/// The version of NCCL, as it counts itself.
pub(crate) fn version() -> Result<i32, Failure> {
    let (api, mut version) = (NcclApi::load()?, 0);
    // SAFETY: the out-parameter is a live local.
    check("ncclGetVersion", unsafe { (api.version)(&mut version) })?;
    Ok(version)
}

/// How the calls of a communicator return.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Calls {
    /// When the work is queued, as is usual.
    Blocking,
    /// At once; then the state of the communicator is asked for until the work is queued.
    NonBlocking,
}

/// One rank of a communicator. It lives as long as the process.
pub(crate) struct RawRank {
    api: NcclApi,
    comm: Comm,
    calls: Calls,
}

impl RawRank {
    /// Joins, and waits for the other ranks.
    pub(crate) fn join(
        _context: &Raw,
        id: RawId,
        (rank, size): (u32, u32),
        calls: Calls,
    ) -> Result<Self, Failure> {
        let mut config = Config {
            size: size_of::<Config>(),
            magic: 0xcafe_beef,
            version: 21_800,
            blocking: i32::from(calls == Calls::Blocking),
            numbers: [UNDEFINED; 3],
            net_name: ptr::null(),
            split_share: UNDEFINED,
        };
        let mut joined = Self { api: NcclApi::load()?, comm: ptr::null_mut(), calls };
        // SAFETY: the out-parameter and the configuration are live locals, and a context is current in this thread.
        let status =
            unsafe { (joined.api.init)(&mut joined.comm, size as i32, id, rank as i32, &mut config) };
        joined.done("ncclCommInitRankConfig", status)?;
        Ok(joined)
    }

    /// Queues a sum over all ranks of so many `f32`.
    pub(crate) fn queue(
        &self,
        stream: sys::CUstream,
        [from, to]: [u64; 2],
        count: usize,
    ) -> Result<(), Failure> {
        if self.calls == Calls::Blocking {
            return check("ncclAllReduce", self.all_reduce(stream, [from, to], count));
        }
        // SAFETY: the call takes nothing; the group is ended below.
        check("ncclGroupStart", unsafe { (self.api.group_start)() })?;
        let queued = self.all_reduce(stream, [from, to], count);
        // SAFETY: the group was begun above.
        let ended = unsafe { (self.api.group_end)() };
        self.done("ncclAllReduce", queued)?;
        self.done("ncclGroupEnd", ended)
    }

    fn all_reduce(&self, stream: sys::CUstream, [from, to]: [u64; 2], count: usize) -> i32 {
        let [from, to] = [from, to].map(|address| ptr::without_provenance_mut::<c_void>(address as usize));
        // SAFETY: the communicator lives as long as the process, and the addresses are those of as many elements, which live until the caller
        // has waited for the stream.
        unsafe { (self.api.all_reduce)(from, to, count, F32, SUM, self.comm, stream) }
    }

    /// Waits until the communicator has done what it was asked.
    fn done(&self, call: &str, status: i32) -> Result<(), Failure> {
        let mut state = status;
        while state == IN_PROGRESS {
            // SAFETY: the communicator lives as long as the process, and the out-parameter is a live local.
            check("ncclCommGetAsyncError", unsafe { (self.api.state)(self.comm, &mut state) })?;
        }
        check(call, state)
    }
}
