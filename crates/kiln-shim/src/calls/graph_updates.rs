//! Changes of executable graphs.

use std::ffi::{c_int, c_uint};
use std::sync::Arc;

use cudarc::driver::sys::CUgraphExecUpdateResult as R;
use kiln_driver::{Code, FunctionId};

use crate::boundary::Answer;
use crate::caller_memory::{In, Out};
use crate::calls::copies::Copy3D;
use crate::calls::graph_body::GraphBody;
use crate::calls::graph_parameters::{
    HostParameters, KernelParameters, KernelParameters2, copy, fill, host, kernel,
};
use crate::calls::graph_work::{ChildGraph, FillParameters, NodeWork};
use crate::calls::graphs::{Graph, GraphExec, executable, graph};
use crate::calls::process_state::{ProcessState, state};
use crate::handle_table::RawHandle;

const UPDATE_FAILURE: Code = Code(910);

/// The structure `CUgraphExecUpdateResultInfo`.
#[repr(C)]
#[derive(Clone, Copy)]
struct UpdateResult {
    result: c_uint,
    node: RawHandle,
    from_node: RawHandle,
}

fn host_function(state: &ProcessState, exec: &GraphExec) -> Answer<Option<FunctionId>> {
    Ok(state.device(exec.context.device as c_int)?.host_function())
}

/// The executable graph of a handle, and the number of a node in it. The node is named by that of the graph it was made of.
fn node_of(state: &ProcessState, handle: RawHandle, node: RawHandle) -> Answer<(Arc<GraphExec>, u32)> {
    let exec = executable(state, handle)?;
    let node = state.graph_nodes.get(node).ok_or(Code::INVALID_VALUE)?;
    if node.graph == exec.graph { Ok((exec, node.number)) } else { Err(Code::INVALID_VALUE) }
}

/// Replaces the work of a node by work of the same kind, for later launches.
pub(crate) fn replace(
    handle: RawHandle,
    node: RawHandle,
    work: impl FnOnce(&ProcessState, &GraphExec) -> Answer<NodeWork>,
) -> Answer {
    let state = state()?;
    let (exec, number) = node_of(state, handle, node)?;
    let mut work = work(state, &exec)?;
    let function = host_function(state, &exec)?;
    exec.change(|body| {
        let node = body.get_mut(number)?;
        let is_same = node.work.kind(function) == work.kind(function);
        // Copies and fills of several rows cannot be changed, nor become such.
        if !is_same || node.work.has_rows() || work.has_rows() {
            return Err(Code::INVALID_VALUE);
        }
        work.keep_attributes(&node.work);
        node.work = work;
        Ok(())
    })
}

/// Why a graph cannot take the place of another, with the number of its node.
fn difference(ours: &GraphBody, theirs: &GraphBody, host: Option<FunctionId>) -> Option<(R, Option<u32>)> {
    use R::{
        CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED as KIND,
        CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED as PARAMETERS,
        CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED as TOPOLOGY,
    };
    if ours.nodes().count() != theirs.nodes().count() {
        return Some((TOPOLOGY, None));
    }
    let places = |body: &GraphBody| -> Vec<Vec<usize>> {
        let numbers: Vec<u32> = body.nodes().map(|(number, _)| number).collect();
        let place = |number: &u32| numbers.binary_search(number).unwrap_or(usize::MAX);
        body.nodes()
            .map(|(_, node)| {
                let mut after: Vec<usize> = node.after.iter().map(place).collect();
                after.sort_unstable();
                after
            })
            .collect()
    };
    let (before, now) = (places(ours), places(theirs));
    for (((_, mine), (number, other)), edges) in ours.nodes().zip(theirs.nodes()).zip(before.iter().zip(&now))
    {
        if mine.work.kind(host) != other.work.kind(host) {
            return Some((KIND, Some(number)));
        }
        if edges.0 != edges.1 {
            return Some((TOPOLOGY, Some(number)));
        }
        for (mine, other) in mine.work.children().iter().zip(other.work.children()) {
            if let Some((why, _)) = difference(mine.copied(), other.copied(), host) {
                return Some((why, Some(number)));
            }
        }
        let is_other = match (&mine.work, &other.work) {
            (NodeWork::Allocate(mine), NodeWork::Allocate(other)) => !Arc::ptr_eq(mine, other),
            (NodeWork::Free(mine), NodeWork::Free(other)) => !Arc::ptr_eq(mine, other),
            (NodeWork::Conditional(mine), NodeWork::Conditional(other)) => !mine.is_like(other),
            _ => false,
        };
        if is_other || mine.work.has_rows() != other.work.has_rows() {
            return Some((PARAMETERS, Some(number)));
        }
    }
    None
}

/// Makes an executable graph do what another graph of the same shape does; the reason why not, with the node.
fn update(
    state: &ProcessState,
    exec: &GraphExec,
    handle: RawHandle,
    graph: &Graph,
) -> Answer<(R, RawHandle)> {
    let theirs = graph.body().clone();
    if graph.context.device != exec.context.device {
        return Ok((R::CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED, 0));
    }
    let host = host_function(state, exec)?;
    if let Some((why, number)) = difference(&exec.body(), &theirs, host) {
        let node = number.map_or(Ok(0), |number| graph.handle(state, handle, number))?;
        return Ok((why, node));
    }
    exec.change(|body| {
        let numbers: Vec<u32> = body.nodes().map(|(number, _)| number).collect();
        for (number, (_, other)) in numbers.into_iter().zip(theirs.nodes()) {
            body.get_mut(number)?.work = other.work.clone();
        }
        Ok(())
    })?;
    Ok((R::CU_GRAPH_EXEC_UPDATE_SUCCESS, 0))
}

driver_api! {
    fn cuGraphExecKernelNodeSetParams(exec: RawHandle, node: RawHandle, given: In<KernelParameters>) {
        let given = given.get()?;
        replace(exec, node, |state, exec| kernel(state, &exec.context, &given))
    }

    fn cuGraphExecKernelNodeSetParams_v2(exec: RawHandle, node: RawHandle, given: In<KernelParameters2>) {
        let given = given.get()?.checked()?;
        replace(exec, node, |state, exec| kernel(state, &exec.context, &given))
    }

    fn cuGraphExecMemcpyNodeSetParams(exec: RawHandle, node: RawHandle, given: In<Copy3D>, _context: RawHandle) {
        let given = given.get()?;
        replace(exec, node, |state, exec| copy(state, &exec.context, &given))
    }

    fn cuGraphExecMemsetNodeSetParams(exec: RawHandle, node: RawHandle, given: In<FillParameters>, _context: RawHandle) {
        let given = given.get()?;
        replace(exec, node, |state, exec| fill(state, &exec.context, given))
    }

    fn cuGraphExecHostNodeSetParams(exec: RawHandle, node: RawHandle, given: In<HostParameters>) {
        let given = given.get()?;
        replace(exec, node, |state, exec| host(state, &exec.context, given))
    }

    fn cuGraphExecChildGraphNodeSetParams(exec: RawHandle, node: RawHandle, child: RawHandle) {
        let child = graph(state()?, child)?.body().clone();
        let (_, number) = node_of(state()?, exec, node)?;
        replace(exec, node, |state, exec| {
            let function = host_function(state, exec)?;
            match &exec.body().get(number)?.work {
                NodeWork::Child(before) if difference(before.copied(), &child, function).is_none() => {
                    Ok(NodeWork::Child(ChildGraph::new(child)))
                }
                _ => Err(Code::INVALID_VALUE),
            }
        })
    }

    fn cuGraphNodeSetEnabled(exec: RawHandle, node: RawHandle, enabled: c_uint) {
        let state = state()?;
        let (exec, number) = node_of(state, exec, node)?;
        exec.change(|body| {
            let node = body.get_mut(number)?;
            // Kernels, copies and fills can be switched off.
            let can_be = matches!(node.work, NodeWork::Launch(_) | NodeWork::Copy(_) | NodeWork::Fill { .. });
            if enabled > 1 || !can_be {
                return Err(Code::INVALID_VALUE);
            }
            node.is_enabled = enabled != 0;
            Ok(())
        })
    }

    fn cuGraphNodeGetEnabled(exec: RawHandle, node: RawHandle, out: Out<c_uint>) {
        let (exec, number) = node_of(state()?, exec, node)?;
        let is_enabled = exec.body().get(number)?.is_enabled;
        out.set(c_uint::from(is_enabled))
    }

    fn cuGraphExecUpdate_v2(exec: RawHandle, handle: RawHandle, out: Out<UpdateResult>) {
        let state = state()?;
        let exec = executable(state, exec)?;
        let (result, node) = update(state, &exec, handle, &*graph(state, handle)?)?;
        out.set(UpdateResult { result: result as c_uint, node, from_node: 0 })?;
        if result == R::CU_GRAPH_EXEC_UPDATE_SUCCESS { Ok(()) } else { Err(UPDATE_FAILURE) }
    }

    fn cuGraphExecUpdate(exec: RawHandle, handle: RawHandle, out_node: Out<RawHandle>, out: Out<c_uint>) {
        let state = state()?;
        let exec = executable(state, exec)?;
        let (result, node) = update(state, &exec, handle, &*graph(state, handle)?)?;
        out_node.set_if_wanted(node);
        out.set(result as c_uint)?;
        if result == R::CU_GRAPH_EXEC_UPDATE_SUCCESS { Ok(()) } else { Err(UPDATE_FAILURE) }
    }
}
