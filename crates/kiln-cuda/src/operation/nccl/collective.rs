//! Collectives as calls of NCCL.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use cudarc::driver::sys::CUstream;
use kiln_driver::{Error, Result};
use kiln_operation::{
    Collective, CollectiveGroup, CollectiveKind, CollectiveType, OperandEffect, OperationOperand, Reduction,
};

use super::symbols::NcclApi;
use super::{FLOAT8_VERSION, NcclRank, NcclResult, check};
use crate::operation::PreparedOperation;
use crate::operation::arguments::OperationArguments;

/// A function of a rank: a collective, or a group of them.
pub(in crate::operation) struct NcclCollective {
    rank: Arc<NcclRank>,
    group: CollectiveGroup,
    /// How many buffers each collective has on this rank.
    buffers: Vec<usize>,
    /// Whether it is several calls of NCCL, which must not wait for each other.
    is_group: bool,
}

impl NcclCollective {
    /// The function of that name, and its arguments.
    pub(in crate::operation) fn new(
        call: &'static str,
        rank: &Arc<NcclRank>,
        name: &str,
    ) -> Result<(Self, &'static str, Vec<OperationOperand>)> {
        const NEXT: &str = "look up a collective of this communicator";
        let wrong = |error: kiln_operation::OperationError| Error::invalid(call, error.to_string(), NEXT);
        let group: CollectiveGroup = name.parse().map_err(wrong)?;
        group.check(rank.rank.rank, rank.rank.size).map_err(wrong)?;
        let is_float8 = |collective: &Collective| {
            collective.element() == CollectiveType::F8E4M3 && collective.kind().reduces()
        };
        if rank.version < FLOAT8_VERSION && group.collectives().iter().any(is_float8) {
            let why = "NCCL reduces numbers of 8 bits from version 2.24 on; reduce f16 or bf16";
            return Err(Error::unsupported(call, "a reduction of f8e4m3", why));
        }
        let mut operands = Vec::new();
        let mut buffers = Vec::new();
        for (collective, each) in
            group.collectives().iter().zip(group.operands(rank.rank.rank, rank.rank.size))
        {
            buffers.push(each.len());
            let alignment = collective.element().bytes();
            operands.extend(each.into_iter().map(|operand| OperationOperand {
                name: operand.name,
                effect: operand.effect,
                bytes: 0,
                alignment,
            }));
            let effect = OperandEffect::Scalar;
            operands.push(OperationOperand { name: "count", effect, bytes: 0, alignment: 1 });
        }
        let words = match group.collectives() {
            [one] => one.name(),
            _ => "a group of collectives",
        };
        let is_group = match group.collectives() {
            [one] => is_several_calls(one, rank.rank.rank),
            _ => true,
        };
        Ok((Self { rank: rank.clone(), group, buffers, is_group }, words, operands))
    }
}

impl PreparedOperation for NcclCollective {
    fn workspace_bytes(&self) -> u64 {
        0
    }

    /// A capture would wait for the other ranks.
    fn is_captured_at_load(&self) -> bool {
        false
    }

    fn communicator(&self) -> Option<&Arc<NcclRank>> {
        Some(&self.rank)
    }

    /// The other ranks are waited for before the stream is entered.
    fn before_queue(&self) -> NcclResult<()> {
        self.rank.join()
    }

    unsafe fn queue(&self, stream: CUstream, arguments: &OperationArguments<'_>) -> NcclResult<()> {
        let calls = |api: &'static NcclApi, comm: *mut c_void| {
            let mut first = 0;
            for (collective, buffers) in self.group.collectives().iter().zip(&self.buffers) {
                let count = arguments.word(first + buffers) as usize;
                let called = Called {
                    api,
                    comm,
                    stream,
                    rank: self.rank.rank.rank as usize,
                    size: self.rank.rank.size as usize,
                    block_bytes: count * collective.element().bytes() as usize,
                    count,
                    from: arguments.address(first),
                    to: arguments.address(first + buffers - 1),
                    has_both: *buffers == 2,
                };
                // SAFETY: the caller vouches for stream and addresses, and the communicator is held.
                unsafe { called.queue(collective) }?;
                first += buffers + 1;
            }
            Ok(())
        };
        // SAFETY: as above.
        unsafe { self.rank.queue(self.is_group, calls) }
    }
}

/// Whether NCCL has no single call for a collective of this rank.
fn is_several_calls(collective: &Collective, rank: u32) -> bool {
    match collective.kind() {
        CollectiveKind::AllToAll => true,
        CollectiveKind::Gather | CollectiveKind::Scatter => collective.root_rank() == Some(rank),
        _ => false,
    }
}

/// One collective with everything a call takes.
struct Called {
    api: &'static NcclApi,
    comm: *mut c_void,
    stream: CUstream,
    rank: usize,
    size: usize,
    block_bytes: usize,
    count: usize,
    /// The first buffer, and the last.
    from: *mut c_void,
    to: *mut c_void,
    has_both: bool,
}

impl Called {
    /// A block of a buffer.
    fn block(&self, buffer: *mut c_void, at: usize) -> *mut c_void {
        buffer.wrapping_byte_add(at * self.block_bytes)
    }

    /// # Safety
    /// The buffers are as large as the collective says, and may be accessed until it is done.
    unsafe fn queue(&self, collective: &Collective) -> NcclResult<()> {
        use CollectiveKind::*;
        let (api, comm, stream, count) = (self.api, self.comm, self.stream, self.count);
        let (from, to, rank) = (self.from, self.to, self.rank);
        let data = data_type(collective.element());
        let operation = collective.reduction_kind().map_or(0, reduction);
        let root = collective.root_rank().unwrap_or(0) as usize;
        let root_number = root as c_int;
        let failed = |call, status| check(api, call, status);
        // SAFETY: here and below, as the caller vouches; blocks lie inside of the buffers.
        unsafe {
            match collective.kind() {
                AllReduce => {
                    failed("ncclAllReduce", (api.all_reduce)(from, to, count, data, operation, comm, stream))
                }
                Barrier => failed("ncclAllReduce", (api.all_reduce)(from, to, 1, 1, 0, comm, stream)),
                Reduce => {
                    let to = if rank == root { to } else { std::ptr::null_mut() };
                    let status = (api.reduce)(from, to, count, data, operation, root_number, comm, stream);
                    failed("ncclReduce", status)
                }
                ReduceScatter => {
                    let to = if self.has_both { to } else { self.block(to, rank) };
                    let status = (api.reduce_scatter)(from, to, count, data, operation, comm, stream);
                    failed("ncclReduceScatter", status)
                }
                Broadcast => {
                    let (count, data) = self.moved(collective);
                    failed("ncclBroadcast", (api.broadcast)(from, to, count, data, root_number, comm, stream))
                }
                AllGather => {
                    let (count, data) = self.moved(collective);
                    let from = if self.has_both { from } else { self.block(from, rank) };
                    failed("ncclAllGather", (api.all_gather)(from, to, count, data, comm, stream))
                }
                Send => self.send(collective, from, root),
                Recv => self.recv(collective, to, root),
                AllToAll => (0..self.size).try_for_each(|peer| {
                    self.send(collective, self.block(from, peer), peer)?;
                    self.recv(collective, self.block(to, peer), peer)
                }),
                Gather if rank != root => self.send(collective, from, root),
                Gather => self.others(rank).try_for_each(|peer| {
                    if peer == rank {
                        self.send(collective, from, root)?;
                    }
                    self.recv(collective, self.block(to, peer), peer)
                }),
                Scatter if rank != root => self.recv(collective, to, root),
                Scatter => self.others(rank).try_for_each(|peer| {
                    self.send(collective, self.block(from, peer), peer)?;
                    if peer == rank { self.recv(collective, to, root) } else { Ok(()) }
                }),
            }
        }
    }

    /// The ranks that the root exchanges a block with: all of them, but not itself where its block is in place.
    fn others(&self, rank: usize) -> impl Iterator<Item = usize> {
        let has_both = self.has_both;
        (0..self.size).filter(move |peer| has_both || *peer != rank)
    }

    /// Count and type of elements that are only moved; those that NCCL has no type for are moved as bytes.
    fn moved(&self, collective: &Collective) -> (usize, c_int) {
        match collective.element() {
            CollectiveType::I16 | CollectiveType::U16 | CollectiveType::F8E4M3 => (self.block_bytes, 1),
            element => (self.count, data_type(element)),
        }
    }

    unsafe fn send(&self, collective: &Collective, from: *mut c_void, peer: usize) -> NcclResult<()> {
        let (count, data) = self.moved(collective);
        // SAFETY: the caller vouches for the buffer.
        let status = unsafe { (self.api.send)(from, count, data, peer as c_int, self.comm, self.stream) };
        check(self.api, "ncclSend", status)
    }

    unsafe fn recv(&self, collective: &Collective, to: *mut c_void, peer: usize) -> NcclResult<()> {
        let (count, data) = self.moved(collective);
        // SAFETY: the caller vouches for the buffer.
        let status = unsafe { (self.api.recv)(to, count, data, peer as c_int, self.comm, self.stream) };
        check(self.api, "ncclRecv", status)
    }
}

/// `ncclDataType_t`.
fn data_type(element: CollectiveType) -> c_int {
    match element {
        CollectiveType::I8 => 0,
        CollectiveType::U8 => 1,
        CollectiveType::I32 => 2,
        CollectiveType::U32 => 3,
        CollectiveType::I64 => 4,
        CollectiveType::U64 => 5,
        CollectiveType::F16 => 6,
        CollectiveType::F32 => 7,
        CollectiveType::F64 => 8,
        CollectiveType::Bf16 => 9,
        CollectiveType::F8E4M3 => 10,
        // Those are moved as bytes.
        _ => 1,
    }
}

/// `ncclRedOp_t`.
fn reduction(reduction: Reduction) -> c_int {
    match reduction {
        Reduction::Sum => 0,
        Reduction::Product => 1,
        Reduction::Max => 2,
        Reduction::Min => 3,
        Reduction::Average => 4,
    }
}
