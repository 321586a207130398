//! Nodes of graphs that allocate and free memory, and the figures of such memory.

use std::ffi::{c_int, c_uint};
use std::sync::Arc;

use cudarc::driver::sys::{self, CUgraphMem_attribute as Attribute, CUgraphNodeType as Kind};
use kiln_driver::Code;

use crate::boundary::{Answer, OrCode};
use crate::caller_memory::{In, Out};
use crate::calls::context::Context;
use crate::calls::graph_memory::{AllocationParameters, GraphMemory};
use crate::calls::graph_nodes::{add, read};
use crate::calls::graph_work::NodeWork;
use crate::calls::graphs::{Graph, graph};
use crate::calls::memory_map::Backing;
use crate::calls::process_state::{ProcessState, state};
use crate::handle_table::RawHandle;

/// What is reserved for graphs grows by this.
const RESERVED_BYTES: u64 = 32 << 20;

/// A node that allocates; its parameters have the address then.
pub(crate) fn allocate(
    state: &ProcessState,
    context: &Context,
    given: AllocationParameters,
) -> Answer<NodeWork> {
    let on_device = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE as u32;
    let pinned = sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED as u32;
    if given.bytes == 0 || given.pool.kind != pinned || given.pool.location_kind != on_device {
        return Err(Code::INVALID_VALUE);
    }
    state.device(given.pool.location).map_err(|_| Code::INVALID_VALUE)?;
    // Memory of graphs stays in the process, and is on the device of the graph.
    if given.pool.handle_types != 0 || given.pool.location != context.device as c_int {
        return Err(Code::NOT_SUPPORTED);
    }
    Ok(NodeWork::Allocate(GraphMemory::create(state, context, given)?))
}

/// A node that frees memory of a graph; one graph frees it once.
pub(crate) fn free(state: &ProcessState, graph: &Graph, address: u64) -> Answer<NodeWork> {
    let memory = memory_at(state, address)?;
    let is_same = |work: &NodeWork| matches!(work, NodeWork::Free(other) if Arc::ptr_eq(other, &memory));
    if graph.body().nodes().any(|(_, node)| is_same(&node.work)) {
        return Err(Code::INVALID_VALUE);
    }
    Ok(NodeWork::Free(memory))
}

fn memory_at(state: &ProcessState, address: u64) -> Answer<Arc<GraphMemory>> {
    match state.memory.around_in_graph(address) {
        Some((allocation, 0)) => match &allocation.backing {
            Backing::Graph(memory) => Ok(memory.clone()),
            _ => Err(Code::INVALID_VALUE),
        },
        _ => Err(Code::INVALID_VALUE),
    }
}

/// What is used and reserved now, and the most that was.
fn figure(state: &ProcessState, device: c_int, attribute: c_uint) -> Answer<u64> {
    let place = state.device(device)?;
    // What belongs to graphs counts, whether a launch made it or not.
    let used = state.memory.graph_bytes(device as u32).next_multiple_of(RESERVED_BYTES);
    let reserved = used;
    let high = place.note_graph_memory(used, reserved);
    Ok(match attribute {
        a if a == Attribute::CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT as c_uint => used,
        a if a == Attribute::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH as c_uint => high.0,
        a if a == Attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT as c_uint => reserved,
        a if a == Attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH as c_uint => high.1,
        _ => return Err(Code::INVALID_VALUE),
    })
}

driver_api! {
    fn cuGraphAddMemAllocNode(
        out: Out<RawHandle>, graph: RawHandle, after: In<RawHandle>, count: usize, given: Out<AllocationParameters>
    ) {
        let parameters = given.get()?;
        let mut address = 0;
        add(out, graph, (after, count), |state, context| {
            let work = allocate(state, context, parameters)?;
            if let NodeWork::Allocate(memory) = &work {
                address = memory.address;
            }
            Ok(work)
        })?;
        given.set(AllocationParameters { address, ..parameters })
    }

    fn cuGraphAddMemFreeNode(out: Out<RawHandle>, handle: RawHandle, after: In<RawHandle>, count: usize, address: u64) {
        let graph = graph(state()?, handle)?;
        add(out, handle, (after, count), |state, _| free(state, &graph, address))
    }

    fn cuGraphMemAllocNodeGetParams(node: RawHandle, out: Out<AllocationParameters>) {
        out.check()?;
        out.set(read(node, Kind::CU_GRAPH_NODE_TYPE_MEM_ALLOC, |work| match work {
            NodeWork::Allocate(memory) => Ok(memory.given),
            _ => Err(Code::INVALID_VALUE),
        })?)
    }

    fn cuGraphMemFreeNodeGetParams(node: RawHandle, out: Out<u64>) {
        out.check()?;
        out.set(read(node, Kind::CU_GRAPH_NODE_TYPE_MEM_FREE, |work| match work {
            NodeWork::Free(memory) => Ok(memory.address),
            _ => Err(Code::INVALID_VALUE),
        })?)
    }

    fn cuDeviceGetGraphMemAttribute(device: c_int, attribute: c_uint, out: Out<u64>) {
        let state = state()?;
        let value = figure(state, device, attribute)?;
        out.set(value)
    }

    fn cuDeviceSetGraphMemAttribute(device: c_int, attribute: c_uint, value: In<u64>) {
        let state = state()?;
        let place = state.device(device)?;
        let is_high = attribute == Attribute::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH as c_uint
            || attribute == Attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH as c_uint;
        // The high marks can be set to 0 only.
        if !is_high || value.get()? != 0 {
            return Err(Code::INVALID_VALUE);
        }
        place.forget_graph_memory(attribute == Attribute::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH as c_uint);
        figure(state, device, attribute).map(|_| ())
    }

    fn cuDeviceGraphMemTrim(device: c_int) {
        let state = state()?;
        let place = state.device(device)?;
        // Memory of graphs that are gone is given back when the work of its context is done.
        place.driver.trim_pool(0).or_code()
    }
}
