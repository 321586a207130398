//! Nodes of graphs that write values to memory and wait for them.

use std::ffi::c_uint;

use cudarc::driver::sys::CUgraphNodeType as Kind;
use kiln_driver::Code;

use crate::boundary::Answer;
use crate::caller_memory::{In, Out};
use crate::calls::context::{Context, named};
use crate::calls::graph_nodes::{add, read, replace};
use crate::calls::graph_updates;
use crate::calls::graph_work::NodeWork;
use crate::calls::process_state::ProcessState;
use crate::calls::value_operations::{Operation, batch};
use crate::handle_table::RawHandle;

/// The structure `CUDA_BATCH_MEM_OP_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct BatchParameters {
    context: RawHandle,
    count: c_uint,
    operations: In<Operation>,
    flags: c_uint,
}

const _: () = assert!(
    size_of::<BatchParameters>() == size_of::<cudarc::driver::sys::CUDA_BATCH_MEM_OP_NODE_PARAMS_v1>()
);

/// A node of operations.
pub(crate) fn operations(
    state: &ProcessState,
    context: &Context,
    given: BatchParameters,
) -> Answer<NodeWork> {
    let ours = named(state, given.context).map_err(|_| Code::INVALID_VALUE)?;
    if ours.device != context.device {
        return Err(Code::INVALID_VALUE);
    }
    batch(state, (context, true), (given.operations, given.count as usize), given.flags)
}

driver_api! {
    fn cuGraphAddBatchMemOpNode(out: Out<RawHandle>, graph: RawHandle, after: In<RawHandle>, count: usize, given: In<BatchParameters>) {
        let given = given.get()?;
        add(out, graph, (after, count), |state, context| operations(state, context, given))
    }

    fn cuGraphBatchMemOpNodeGetParams(node: RawHandle, out: Out<BatchParameters>) {
        out.check()?;
        // The list lives as long as the node has it.
        let (address, count) = read(node, Kind::CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, |work| match work {
            NodeWork::Batch(batch) => Ok((batch.given.as_ptr().addr(), batch.given.len())),
            _ => Err(Code::INVALID_VALUE),
        })?;
        let context = crate::calls::graphs::context_of(node)?;
        out.set(BatchParameters { context, count: count as c_uint, operations: In::at_address(address), flags: 0 })
    }

    fn cuGraphBatchMemOpNodeSetParams(node: RawHandle, given: In<BatchParameters>) {
        let given = given.get()?;
        replace(node, |state, graph| operations(state, &graph.context, given))
    }

    fn cuGraphExecBatchMemOpNodeSetParams(exec: RawHandle, node: RawHandle, given: In<BatchParameters>) {
        let given = given.get()?;
        graph_updates::replace(exec, node, |state, exec| operations(state, &exec.context, given))
    }
}
