//! Nodes of any kind by one structure, and attributes of kernels in graphs.

use std::ffi::{c_int, c_uint, c_void};

use cudarc::driver::sys::{CUgraphNodeType as Kind, CUlaunchAttributeID as Attribute};
use kiln_driver::{Code, Dim3};

use crate::boundary::Answer;
use crate::caller_memory::{In, Out};
use crate::calls::context::Context;
use crate::calls::copies::Copy3D;
use crate::calls::graph_conditions::{ConditionalParameters, conditional};
use crate::calls::graph_memory::AllocationParameters;
use crate::calls::graph_nodes::{add, check_context, read, replace};
use crate::calls::graph_parameters::{HostParameters, KernelParameters2, copy, fill, host, kernel};
use crate::calls::graph_updates;
use crate::calls::graph_work::{ChildGraph, FillParameters, NodeWork, OwnedLaunch};
use crate::calls::graphs::graph;
use crate::calls::process_state::{ProcessState, state};
use crate::calls::{graph_batch_nodes, graph_event_nodes, graph_memory_nodes};
use crate::handle_table::RawHandle;
use crate::records;

/// The structure `CUgraphNodeParams`: a kind, and what that kind has.
#[repr(C)]
#[derive(Clone, Copy)]
struct AnyParameters {
    kind: c_uint,
    reserved: [c_int; 3],
    of_kind: [u64; 29],
    rest: i64,
}

const _: () = assert!(size_of::<AnyParameters>() == size_of::<cudarc::driver::sys::CUgraphNodeParams>());
/// Where the parameters of the kind begin.
const OF_KIND: usize = 16;

/// The structure `CUDA_MEMCPY_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy)]
struct CopyInContext {
    flags: c_int,
    reserved: c_int,
    context: RawHandle,
    copy: Copy3D,
}

/// The structure `CUDA_MEMSET_NODE_PARAMS_v2`.
#[repr(C)]
#[derive(Clone, Copy)]
struct FillInContext {
    fill: FillParameters,
    context: RawHandle,
}

/// The work that the structure says.
fn work(state: &ProcessState, context: &Context, given: In<AnyParameters>) -> Answer<NodeWork> {
    /// What the structure has for its kind.
    fn of_kind<T: Copy>(given: In<AnyParameters>) -> Answer<T> {
        In::<T>::at_address(given.address() + OF_KIND).get()
    }
    match given.get()?.kind {
        k if k == Kind::CU_GRAPH_NODE_TYPE_KERNEL as c_uint => {
            kernel(state, context, &of_kind::<KernelParameters2>(given)?.checked()?)
        }
        k if k == Kind::CU_GRAPH_NODE_TYPE_MEMCPY as c_uint => {
            let what: CopyInContext = of_kind(given)?;
            check_context(state, context, what.context)?;
            if what.flags == 0 { copy(state, context, &what.copy) } else { Err(Code::INVALID_VALUE) }
        }
        k if k == Kind::CU_GRAPH_NODE_TYPE_MEMSET as c_uint => {
            let what: FillInContext = of_kind(given)?;
            check_context(state, context, what.context)?;
            fill(state, context, what.fill)
        }
        k if k == Kind::CU_GRAPH_NODE_TYPE_HOST as c_uint => {
            host(state, context, of_kind::<HostParameters>(given)?)
        }
        k if k == Kind::CU_GRAPH_NODE_TYPE_GRAPH as c_uint => {
            let child = graph(state, of_kind::<RawHandle>(given)?)?;
            let body = child.body().clone();
            if body.has_one_owner() {
                Err(Code::NOT_SUPPORTED)
            } else {
                Ok(NodeWork::Child(ChildGraph::new(body)))
            }
        }
        k if k == Kind::CU_GRAPH_NODE_TYPE_EVENT_RECORD as c_uint => {
            graph_event_nodes::record(state, context, of_kind(given)?)
        }
        k if k == Kind::CU_GRAPH_NODE_TYPE_WAIT_EVENT as c_uint => {
            graph_event_nodes::wait(state, of_kind(given)?)
        }
        k if k == Kind::CU_GRAPH_NODE_TYPE_BATCH_MEM_OP as c_uint => {
            graph_batch_nodes::operations(state, context, of_kind(given)?)
        }
        k if k == Kind::CU_GRAPH_NODE_TYPE_EMPTY as c_uint => Ok(NodeWork::Empty),
        k if k <= Kind::CU_GRAPH_NODE_TYPE_CONDITIONAL as c_uint => {
            records::note_once(
                "node kinds",
                "a node for a semaphore was added to a graph, or a node was made one for memory or a condition; kiln has none of them",
            );
            Err(Code::NOT_SUPPORTED)
        }
        _ => Err(Code::INVALID_VALUE),
    }
}

/// Adds a node of any kind. One for memory writes the address into the structure, one with a condition where its graphs are.
fn add_any(
    out: Out<RawHandle>,
    handle: RawHandle,
    after: (In<RawHandle>, usize),
    given: In<AnyParameters>,
) -> Answer {
    let AnyParameters { kind, reserved, .. } = given.get()?;
    if reserved != [0; 3] {
        return Err(Code::INVALID_VALUE);
    }
    let place = given.address() + OF_KIND;
    let is_allocation = kind == Kind::CU_GRAPH_NODE_TYPE_MEM_ALLOC as c_uint;
    let is_free = kind == Kind::CU_GRAPH_NODE_TYPE_MEM_FREE as c_uint;
    let is_conditional = kind == Kind::CU_GRAPH_NODE_TYPE_CONDITIONAL as c_uint;
    let mut allocated = None;
    let mut bodies = None;
    let owner = graph(state()?, handle)?;
    add(out, handle, after, |state, context| {
        if is_allocation {
            let parameters = In::<AllocationParameters>::at_address(place).get()?;
            let work = graph_memory_nodes::allocate(state, context, parameters)?;
            if let NodeWork::Allocate(memory) = &work {
                allocated = Some(memory.given);
            }
            return Ok(work);
        }
        if is_free {
            return graph_memory_nodes::free(state, &owner, In::<u64>::at_address(place).get()?);
        }
        if is_conditional {
            let given = In::<ConditionalParameters>::at_address(place).get()?;
            let (work, list) = conditional(state, &owner, &given)?;
            bodies = Some(given.with_bodies(list));
            return Ok(work);
        }
        work(state, context, given)
    })?;
    match (allocated, bodies) {
        (Some(made), _) => Out::<AllocationParameters>::at(place as *mut c_void).set(made),
        (_, Some(made)) => Out::<ConditionalParameters>::at(place as *mut c_void).set(made),
        _ => Ok(()),
    }
}

/// Numbers from this one on are no attributes.
const ATTRIBUTES: c_uint = 32;

/// Refuses more dependencies than a graph has nodes, before they are read; none is there twice.
fn check_count(handle: RawHandle, count: usize) -> Answer {
    let nodes = graph(state()?, handle)?.body().nodes().count();
    if count <= nodes { Ok(()) } else { Err(Code::INVALID_VALUE) }
}

/// The launch of a kernel node.
fn launch<T>(node: RawHandle, look: impl FnOnce(&mut OwnedLaunch) -> Answer<T>) -> Answer<T> {
    read(node, Kind::CU_GRAPH_NODE_TYPE_KERNEL, |work| match work {
        NodeWork::Launch(launch) => look(launch),
        _ => Err(Code::INVALID_VALUE),
    })
}

driver_api! {
    fn cuGraphAddNode(out: Out<RawHandle>, graph: RawHandle, after: In<RawHandle>, count: usize, given: In<AnyParameters>) {
        add_any(out, graph, (after, count), given)
    }

    fn cuGraphAddNode_v2(
        out: Out<RawHandle>, graph: RawHandle, after: In<RawHandle>, data: In<[u8; 8]>, count: usize, given: In<AnyParameters>
    ) {
        out.check()?;
        check_count(graph, count)?;
        for index in 0..count {
            if !data.is_null() && data.at(index)? != [0; 8] {
                return Err(Code::NOT_SUPPORTED);
            }
        }
        add_any(out, graph, (after, count), given)
    }

    fn cuGraphNodeSetParams(node: RawHandle, given: In<AnyParameters>) {
        replace(node, |state, graph| work(state, &graph.context, given))
    }

    fn cuGraphExecNodeSetParams(exec: RawHandle, node: RawHandle, given: In<AnyParameters>) {
        graph_updates::replace(exec, node, |state, exec| work(state, &exec.context, given))
    }

    fn cuGraphKernelNodeSetAttribute(node: RawHandle, number: c_uint, value: In<[c_uint; 16]>) {
        let [x, y, z, ..] = value.get()?;
        launch(node, |launch| {
            match number {
                n if n == Attribute::CU_LAUNCH_ATTRIBUTE_COOPERATIVE as c_uint => launch.cooperative = x != 0,
                n if n == Attribute::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION as c_uint => {
                    launch.cluster = Some(Dim3::new(x, y, z)).filter(|cluster| cluster.count() > 0);
                }
                // The others are about speed.
                n if n < ATTRIBUTES => {}
                _ => return Err(Code::INVALID_VALUE),
            }
            Ok(())
        })
    }

    fn cuGraphKernelNodeGetAttribute(node: RawHandle, number: c_uint, out: Out<[c_uint; 16]>) {
        let mut value = [0; 16];
        let [x, y, z, ..] = &mut value;
        launch(node, |launch| {
            match number {
                n if n == Attribute::CU_LAUNCH_ATTRIBUTE_COOPERATIVE as c_uint => *x = c_uint::from(launch.cooperative),
                n if n == Attribute::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION as c_uint => {
                    if let Some(cluster) = launch.cluster {
                        (*x, *y, *z) = (cluster.x, cluster.y, cluster.z);
                    }
                }
                n if n < ATTRIBUTES => {}
                _ => return Err(Code::INVALID_VALUE),
            }
            Ok(())
        })?;
        out.set(value)
    }

    fn cuGraphKernelNodeCopyAttributes(to: RawHandle, from: RawHandle) {
        let (cluster, cooperative) = launch(from, |launch| Ok((launch.cluster, launch.cooperative)))?;
        launch(to, |launch| {
            (launch.cluster, launch.cooperative) = (cluster, cooperative);
            Ok(())
        })
    }
}
