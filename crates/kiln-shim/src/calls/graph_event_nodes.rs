//! Nodes of graphs that record events and wait for them.

use std::sync::Arc;

use cudarc::driver::sys::CUgraphNodeType as Kind;
use kiln_driver::Code;

use crate::boundary::Answer;
use crate::caller_memory::{In, Out};
use crate::calls::context::Context;
use crate::calls::events::{Event, event};
use crate::calls::graph_nodes::{add, read, replace};
use crate::calls::graph_updates;
use crate::calls::graph_work::NodeWork;
use crate::calls::process_state::ProcessState;
use crate::handle_table::RawHandle;

/// An event as a node names it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct NodeEvent(pub(crate) RawHandle);

impl NodeEvent {
    /// The event, if it is still there.
    pub(crate) fn get(self, state: &ProcessState) -> Answer<Arc<Event>> {
        event(state, self.0)
    }
}

/// A node that records.
pub(crate) fn record(state: &ProcessState, context: &Context, handle: RawHandle) -> Answer<NodeWork> {
    let event = event(state, handle).map_err(|_| Code::INVALID_VALUE)?;
    if event.device == context.device {
        Ok(NodeWork::Record(NodeEvent(handle)))
    } else {
        Err(Code::INVALID_VALUE)
    }
}

/// A node that waits; the event may be one of another device.
pub(crate) fn wait(state: &ProcessState, handle: RawHandle) -> Answer<NodeWork> {
    event(state, handle).map_err(|_| Code::INVALID_VALUE)?;
    Ok(NodeWork::WaitEvent(NodeEvent(handle)))
}

fn event_of(node: RawHandle, kind: Kind) -> Answer<RawHandle> {
    read(node, kind, |work| match work {
        NodeWork::Record(event) | NodeWork::WaitEvent(event) => Ok(event.0),
        _ => Err(Code::INVALID_VALUE),
    })
}

driver_api! {
    fn cuGraphAddEventRecordNode(out: Out<RawHandle>, graph: RawHandle, after: In<RawHandle>, count: usize, event: RawHandle) {
        add(out, graph, (after, count), |state, context| record(state, context, event))
    }

    fn cuGraphAddEventWaitNode(out: Out<RawHandle>, graph: RawHandle, after: In<RawHandle>, count: usize, event: RawHandle) {
        add(out, graph, (after, count), |state, _| wait(state, event))
    }

    fn cuGraphEventRecordNodeGetEvent(node: RawHandle, out: Out<RawHandle>) {
        out.check()?;
        out.set(event_of(node, Kind::CU_GRAPH_NODE_TYPE_EVENT_RECORD)?)
    }

    fn cuGraphEventWaitNodeGetEvent(node: RawHandle, out: Out<RawHandle>) {
        out.check()?;
        out.set(event_of(node, Kind::CU_GRAPH_NODE_TYPE_WAIT_EVENT)?)
    }

    fn cuGraphEventRecordNodeSetEvent(node: RawHandle, event: RawHandle) {
        replace(node, |state, graph| record(state, &graph.context, event))
    }

    fn cuGraphEventWaitNodeSetEvent(node: RawHandle, event: RawHandle) {
        replace(node, |state, _| wait(state, event))
    }

    fn cuGraphExecEventRecordNodeSetEvent(exec: RawHandle, node: RawHandle, event: RawHandle) {
        graph_updates::replace(exec, node, |state, exec| record(state, &exec.context, event))
    }

    fn cuGraphExecEventWaitNodeSetEvent(exec: RawHandle, node: RawHandle, event: RawHandle) {
        graph_updates::replace(exec, node, |state, _| wait(state, event))
    }
}
