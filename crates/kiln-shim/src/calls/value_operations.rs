//! Values that streams write to memory and wait for, alone and in batches.

use std::ffi::{c_int, c_uint};

use kiln_driver::{Code, Place};

use crate::boundary::Answer;
use crate::caller_memory::In;
use crate::calls::context::Context;
use crate::calls::graph_work::{BatchWork, NodeWork, OwnedLaunch};
use crate::calls::host_callbacks::{command, pack};
use crate::calls::process_state::{ProcessState, state};
use crate::calls::streams::chosen;
use crate::calls::value_kernels::Comparison;
use crate::handle_table::RawHandle;
use crate::records;

/// Operations of a batch.
const MOST_OPERATIONS: usize = 255;
/// Writes of other devices are in order here, so that there is nothing to flush.
const FLUSH: c_uint = 1 << 30;

const WAIT_32: c_uint = 1;
const WRITE_32: c_uint = 2;
const FLUSH_WRITES: c_uint = 3;
const WAIT_64: c_uint = 4;
const WRITE_64: c_uint = 5;
const BARRIER: c_uint = 6;

/// The structure `CUstreamBatchMemOpParams`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Operation {
    kind: c_uint,
    /// The flags of operations without an address.
    other_flags: c_uint,
    address: u64,
    value: u64,
    flags: c_uint,
    reserved: c_uint,
    alias: u64,
    rest: u64,
}

const _: () = assert!(size_of::<Operation>() == size_of::<cudarc::driver::sys::CUstreamBatchMemOpParams>());

impl Operation {
    fn new(kind: c_uint, address: u64, value: u64, flags: c_uint) -> Self {
        Self { kind, other_flags: 0, address, value, flags, reserved: 0, alias: 0, rest: 0 }
    }

    /// The launch that does it; nothing for one that has nothing to do here.
    fn launch(
        &self,
        state: &ProcessState,
        (context, in_graph): (&Context, bool),
    ) -> Answer<Option<OwnedLaunch>> {
        let bytes: u64 = match self.kind {
            WAIT_32 | WRITE_32 => 4,
            WAIT_64 | WRITE_64 => 8,
            // Streams of this device see writes in the order in which they were made.
            BARRIER if self.other_flags <= 1 => return Ok(None),
            FLUSH_WRITES => return Err(Code::NOT_SUPPORTED),
            _ => return Err(Code::INVALID_VALUE),
        };
        let value = if bytes == 4 { self.value & u64::from(u32::MAX) } else { self.value };
        let is_wait = matches!(self.kind, WAIT_32 | WAIT_64);
        let comparison = self.comparison(is_wait)?;
        check_address(state, (context, in_graph), self.address, bytes)?;
        let kernels = state.device(context.device as c_int)?.value_kernels()?;
        let (at, value, bytes) = (self.address as usize, value as usize, bytes as usize);
        let launch = match comparison {
            Some(comparison) => {
                let arguments = pack([at, value, bytes, comparison as usize]);
                OwnedLaunch::new(&command(kernels.wait, &arguments))
            }
            None => OwnedLaunch::new(&command(kernels.write, &pack([at, value, bytes]))),
        };
        Ok(Some(launch))
    }

    /// How a wait compares; a write has no flags.
    fn comparison(&self, is_wait: bool) -> Answer<Option<Comparison>> {
        match (is_wait, self.flags) {
            (true, flags) if flags & FLUSH != 0 => Err(Code::NOT_SUPPORTED),
            (true, flags) => Comparison::of(flags).map(Some),
            (false, 0) => Ok(None),
            (false, _) => Err(Code::INVALID_VALUE),
        }
    }
}

/// Refuses addresses that are not aligned, have no memory, or have memory that kernels do not reach.
fn check_address(
    state: &ProcessState,
    (context, in_graph): (&Context, bool),
    address: u64,
    bytes: u64,
) -> Answer {
    if !address.is_multiple_of(bytes) {
        return Err(Code::INVALID_VALUE);
    }
    let (allocation, offset) = state.memory.find_in(in_graph, address, bytes)?;
    match allocation.place(context.device, offset) {
        Place::Device(_) => Ok(()),
        Place::Host { .. } | Place::Peer(_) => {
            records::note_once(
                "value elsewhere",
                "a stream was asked to write or wait for a value in registered host memory or in memory of another device; kiln does that in memory of the stream's device, managed and pinned memory",
            );
            Err(Code::NOT_SUPPORTED)
        }
    }
}

/// The work of some operations, which are done one after the other.
pub(crate) fn batch(
    state: &ProcessState,
    (context, in_graph): (&Context, bool),
    (operations, count): (In<Operation>, usize),
    flags: c_uint,
) -> Answer<NodeWork> {
    if count > MOST_OPERATIONS || flags != 0 {
        return Err(Code::INVALID_VALUE);
    }
    let given: Vec<Operation> = (0..count).map(|index| operations.at(index)).collect::<Answer<_>>()?;
    let mut launches = Vec::with_capacity(count);
    for operation in &given {
        launches.extend(operation.launch(state, (context, in_graph))?);
    }
    Ok(NodeWork::Batch(Box::new(BatchWork { launches, given: given.into() })))
}

/// Queues operations on a stream.
fn submit(stream: RawHandle, operations: (In<Operation>, usize), flags: c_uint) -> Answer {
    let state = state()?;
    let (context, choice) = chosen(state, stream)?;
    let in_graph = context.order()?.get()?.is_capturing(&choice);
    let work = batch(state, (&context, in_graph), operations, flags)?;
    let mut order = context.order()?;
    let order = order.get()?;
    if in_graph {
        return order.record(&choice, work);
    }
    for command in work.stages().into_iter().flatten() {
        order.submit(&choice, &command)?;
    }
    Ok(())
}

fn submit_one(stream: RawHandle, operation: Operation) -> Answer {
    submit(stream, (In::at_address((&raw const operation).addr()), 1), 0)
}

/// The first forms of these functions are there for devices whose driver was told so.
fn first_form() -> Answer {
    state()?;
    Err(Code::NOT_SUPPORTED)
}

driver_api! {
    fn cuStreamWaitValue32_v2 | cuStreamWaitValue32_v2_ptsz (stream: RawHandle, address: u64, value: u32, flags: c_uint) {
        submit_one(stream, Operation::new(WAIT_32, address, value.into(), flags))
    }

    fn cuStreamWaitValue64_v2 | cuStreamWaitValue64_v2_ptsz (stream: RawHandle, address: u64, value: u64, flags: c_uint) {
        submit_one(stream, Operation::new(WAIT_64, address, value, flags))
    }

    fn cuStreamWriteValue32_v2 | cuStreamWriteValue32_v2_ptsz (stream: RawHandle, address: u64, value: u32, flags: c_uint) {
        submit_one(stream, Operation::new(WRITE_32, address, value.into(), flags))
    }

    fn cuStreamWriteValue64_v2 | cuStreamWriteValue64_v2_ptsz (stream: RawHandle, address: u64, value: u64, flags: c_uint) {
        submit_one(stream, Operation::new(WRITE_64, address, value, flags))
    }

    fn cuStreamBatchMemOp_v2 | cuStreamBatchMemOp_v2_ptsz (stream: RawHandle, count: c_uint, operations: In<Operation>, flags: c_uint) {
        submit(stream, (operations, count as usize), flags)
    }

    fn cuStreamWaitValue32 | cuStreamWaitValue32_ptsz (_stream: RawHandle, _address: u64, _value: u32, _flags: c_uint) {
        first_form()
    }

    fn cuStreamWaitValue64 | cuStreamWaitValue64_ptsz (_stream: RawHandle, _address: u64, _value: u64, _flags: c_uint) {
        first_form()
    }

    fn cuStreamWriteValue32 | cuStreamWriteValue32_ptsz (_stream: RawHandle, _address: u64, _value: u32, _flags: c_uint) {
        first_form()
    }

    fn cuStreamWriteValue64 | cuStreamWriteValue64_ptsz (_stream: RawHandle, _address: u64, _value: u64, _flags: c_uint) {
        first_form()
    }

    fn cuStreamBatchMemOp | cuStreamBatchMemOp_ptsz (_stream: RawHandle, _count: c_uint, _operations: In<Operation>, _flags: c_uint) {
        first_form()
    }
}
