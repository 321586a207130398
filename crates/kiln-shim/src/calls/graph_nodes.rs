//! Nodes that are added to a graph by hand, and what they are asked and told.

use std::ffi::{c_int, c_uint};
use std::sync::Arc;

use cudarc::driver::sys::CUgraphNodeType as Kind;
use kiln_driver::Code;

use crate::boundary::Answer;
use crate::caller_memory::{In, Out};
use crate::calls::context::{Context, named};
use crate::calls::copies::Copy3D;
use crate::calls::functions::function;
use crate::calls::graph_parameters::{
    HostParameters, KernelParameters, KernelParameters2, copy, fill, host, kernel,
};
use crate::calls::graph_work::{ChildGraph, FillParameters, NodeWork, OwnedLaunch};
use crate::calls::graphs::{Graph, graph, node};
use crate::calls::process_state::{ProcessState, state};
use crate::handle_table::RawHandle;

/// Adds a node after others of the same graph.
pub(crate) fn add(
    out: Out<RawHandle>,
    handle: RawHandle,
    (after, count): (In<RawHandle>, usize),
    work: impl FnOnce(&ProcessState, &Arc<Context>) -> Answer<NodeWork>,
) -> Answer {
    let state = state()?;
    out.check()?;
    let graph = graph(state, handle)?;
    let mut numbers = Vec::with_capacity(count.min(1024));
    for index in 0..count {
        let before = state.graph_nodes.get(after.at(index)?).ok_or(Code::INVALID_VALUE)?;
        if before.graph != handle || numbers.contains(&before.number) {
            return Err(Code::INVALID_VALUE);
        }
        numbers.push(before.number);
    }
    let work = work(state, &graph.context)?;
    let number = graph.body().add(work, numbers);
    out.set(graph.handle(state, handle, number)?)
}

/// The context that a call names for memory; null is that of the graph.
pub(crate) fn check_context(state: &ProcessState, ours: &Context, handle: RawHandle) -> Answer {
    if handle == 0 {
        return Ok(());
    }
    if named(state, handle)?.device == ours.device { Ok(()) } else { Err(Code::INVALID_CONTEXT) }
}

/// Replaces the work of a node by work of the same kind.
pub(crate) fn replace(
    handle: RawHandle,
    work: impl FnOnce(&ProcessState, &Graph) -> Answer<NodeWork>,
) -> Answer {
    let state = state()?;
    let (graph, node) = node(state, handle)?;
    let mut work = work(state, &graph)?;
    let function = state.device(graph.context.device as c_int)?.host_function();
    let mut body = graph.body();
    let before = &mut body.get_mut(node.number)?.work;
    if before.kind(function) != work.kind(function) {
        return Err(Code::INVALID_VALUE);
    }
    work.keep_attributes(before);
    *before = work;
    Ok(())
}

/// Reads the work of a node of a kind.
pub(crate) fn read<T>(
    handle: RawHandle,
    kind: Kind,
    look: impl FnOnce(&mut NodeWork) -> Answer<T>,
) -> Answer<T> {
    let state = state()?;
    let (graph, node) = node(state, handle)?;
    let function = state.device(graph.context.device as c_int)?.host_function();
    let mut body = graph.body();
    let work = &mut body.get_mut(node.number)?.work;
    if work.kind(function) == kind { look(work) } else { Err(Code::INVALID_VALUE) }
}

/// The parameters of a kernel; the pointers to its arguments live as long as the node has them.
fn kernel_parameters(handle: RawHandle) -> Answer<KernelParameters> {
    let state = state()?;
    read(handle, Kind::CU_GRAPH_NODE_TYPE_KERNEL, |work| {
        let NodeWork::Launch(launch) = work else { return Err(Code::INVALID_VALUE) };
        let below = launch.function;
        let known = || state.functions.find(|function| function.below.id == below);
        let given = if launch.given == 0 { known().ok_or(Code::INVALID_VALUE)? } else { launch.given };
        let function = function(state, given)?;
        let spans = function.below.attributes.parameters.as_deref().unwrap_or_default();
        let OwnedLaunch { arguments, pointers, .. } = &mut **launch;
        let start = arguments.as_ptr().addr();
        *pointers = spans.iter().map(|span| start + span.offset as usize).collect();
        Ok(KernelParameters {
            function: given,
            grid: [launch.grid.x, launch.grid.y, launch.grid.z],
            block: [launch.block.x, launch.block.y, launch.block.z],
            shared_bytes: launch.dynamic_shared_bytes,
            parameters: In::at_address(launch.pointers.as_ptr().addr()),
            extra: In::null(),
        })
    })
}

driver_api! {
    fn cuGraphNodeGetType(handle: RawHandle, out: Out<c_uint>) {
        let state = state()?;
        out.check()?;
        let (graph, node) = node(state, handle)?;
        let function = state.device(graph.context.device as c_int)?.host_function();
        let kind = graph.body().get(node.number)?.work.kind(function);
        out.set(kind as c_uint)
    }

    fn cuGraphDestroyNode(handle: RawHandle) {
        let state = state()?;
        let (graph, node) = node(state, handle)?;
        let mut body = graph.body();
        if body.get(node.number)?.work.is_of_memory() {
            return Err(Code::NOT_SUPPORTED);
        }
        body.remove(node.number)?;
        state.graph_nodes.remove(handle);
        Ok(())
    }

    fn cuGraphAddKernelNode(out: Out<RawHandle>, graph: RawHandle, after: In<RawHandle>, count: usize, given: In<KernelParameters>) {
        let given = given.get()?;
        add(out, graph, (after, count), |state, context| kernel(state, context, &given))
    }

    fn cuGraphAddKernelNode_v2(out: Out<RawHandle>, graph: RawHandle, after: In<RawHandle>, count: usize, given: In<KernelParameters2>) {
        let given = given.get()?.checked()?;
        add(out, graph, (after, count), |state, context| kernel(state, context, &given))
    }

    fn cuGraphKernelNodeGetParams(node: RawHandle, out: Out<KernelParameters>) {
        out.check()?;
        out.set(kernel_parameters(node)?)
    }

    fn cuGraphKernelNodeGetParams_v2(node: RawHandle, out: Out<KernelParameters2>) {
        out.check()?;
        let first = kernel_parameters(node)?;
        out.set(KernelParameters2 { first, kernel: 0, context: 0 })
    }

    fn cuGraphKernelNodeSetParams(node: RawHandle, given: In<KernelParameters>) {
        let given = given.get()?;
        replace(node, |state, graph| kernel(state, &graph.context, &given))
    }

    fn cuGraphKernelNodeSetParams_v2(node: RawHandle, given: In<KernelParameters2>) {
        let given = given.get()?.checked()?;
        replace(node, |state, graph| kernel(state, &graph.context, &given))
    }

    fn cuGraphAddMemcpyNode(
        out: Out<RawHandle>, graph: RawHandle, after: In<RawHandle>, count: usize, given: In<Copy3D>, context: RawHandle
    ) {
        let given = given.get()?;
        add(out, graph, (after, count), |state, ours| {
            check_context(state, ours, context)?;
            copy(state, ours, &given)
        })
    }

    fn cuGraphMemcpyNodeGetParams(node: RawHandle, out: Out<Copy3D>) {
        out.check()?;
        // A copy that was captured has no such structure.
        let given = read(node, Kind::CU_GRAPH_NODE_TYPE_MEMCPY, |work| match work {
            NodeWork::Copy(copy) => copy.given.ok_or(Code::NOT_SUPPORTED),
            _ => Err(Code::INVALID_VALUE),
        })?;
        out.set(given)
    }

    fn cuGraphMemcpyNodeSetParams(node: RawHandle, given: In<Copy3D>) {
        let given = given.get()?;
        replace(node, |state, graph| copy(state, &graph.context, &given))
    }

    fn cuGraphAddMemsetNode(
        out: Out<RawHandle>, graph: RawHandle, after: In<RawHandle>, count: usize, given: In<FillParameters>, context: RawHandle
    ) {
        let given = given.get()?;
        add(out, graph, (after, count), |state, ours| {
            check_context(state, ours, context)?;
            fill(state, ours, given)
        })
    }

    fn cuGraphMemsetNodeGetParams(node: RawHandle, out: Out<FillParameters>) {
        out.check()?;
        // A fill that was captured has no such structure.
        let given = read(node, Kind::CU_GRAPH_NODE_TYPE_MEMSET, |work| match work {
            NodeWork::Fill { given, .. } => given.ok_or(Code::NOT_SUPPORTED),
            _ => Err(Code::INVALID_VALUE),
        })?;
        out.set(given)
    }

    fn cuGraphMemsetNodeSetParams(node: RawHandle, given: In<FillParameters>) {
        let given = given.get()?;
        replace(node, |state, graph| fill(state, &graph.context, given))
    }

    fn cuGraphAddHostNode(out: Out<RawHandle>, graph: RawHandle, after: In<RawHandle>, count: usize, given: In<HostParameters>) {
        let given = given.get()?;
        add(out, graph, (after, count), |state, context| host(state, context, given))
    }

    fn cuGraphHostNodeGetParams(node: RawHandle, out: Out<HostParameters>) {
        out.check()?;
        let [function, data] = read(node, Kind::CU_GRAPH_NODE_TYPE_HOST, |work| match work {
            NodeWork::Launch(launch) => Ok([launch.word(0)?, launch.word(1)?]),
            _ => Err(Code::INVALID_VALUE),
        })?;
        out.set(HostParameters { function: function as usize, data: data as usize })
    }

    fn cuGraphHostNodeSetParams(node: RawHandle, given: In<HostParameters>) {
        let given = given.get()?;
        replace(node, |state, graph| host(state, &graph.context, given))
    }

    fn cuGraphAddEmptyNode(out: Out<RawHandle>, graph: RawHandle, after: In<RawHandle>, count: usize) {
        add(out, graph, (after, count), |_, _| Ok(NodeWork::Empty))
    }

    fn cuGraphAddChildGraphNode(out: Out<RawHandle>, handle: RawHandle, after: In<RawHandle>, count: usize, child: RawHandle) {
        let child = graph(state()?, child)?;
        // The child is as it is now.
        let body = child.body().clone();
        add(out, handle, (after, count), |_, context| {
            if body.has_one_owner() {
                return Err(Code::NOT_SUPPORTED);
            }
            if child.context.device == context.device { Ok(NodeWork::Child(ChildGraph::new(body))) } else { Err(Code::INVALID_CONTEXT) }
        })
    }

    fn cuGraphChildGraphNodeGetGraph(handle: RawHandle, out: Out<RawHandle>) {
        let state = state()?;
        out.check()?;
        let (around, _) = node(state, handle)?;
        let child = read(handle, Kind::CU_GRAPH_NODE_TYPE_GRAPH, |work| match work {
            NodeWork::Child(child) => child.open(|body| {
                let graph = Graph::new(around.context.clone(), body);
                let handle = state.graphs.insert(graph.clone()).ok_or(Code::OUT_OF_MEMORY)?;
                Ok((handle, graph))
            }),
            _ => Err(Code::INVALID_VALUE),
        })?;
        out.set(child)
    }
}
