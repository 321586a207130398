//! Graphs: what a capture recorded, made executable and launched.

use std::ffi::{c_uint, c_ulonglong};
use std::sync::{Arc, OnceLock};

use cudarc::driver::sys;
use kiln_driver::{Code, Command, Driver, GraphId, GraphNode};

use crate::boundary::{Answer, OrCode};
use crate::caller_memory::Out;
use crate::calls::capture::{CAPTURE_UNSUPPORTED, CaptureMode, CapturedNode};
use crate::calls::context::Context;
use crate::calls::process_state::{ProcessState, current, state};
use crate::calls::stream_order::StreamChoice;
use crate::calls::streams::chosen;
use crate::handle_table::RawHandle;

/// A graph that can be made executable.
pub(crate) struct Graph {
    pub(crate) context: Arc<Context>,
    nodes: Vec<CapturedNode>,
    /// The handles of its nodes, once they were asked for.
    handles: OnceLock<Vec<RawHandle>>,
}

impl Graph {
    fn new(context: Arc<Context>, nodes: Vec<CapturedNode>) -> Arc<Self> {
        Arc::new(Self { context, nodes, handles: OnceLock::new() })
    }

    /// The handles of its nodes.
    fn handles(&self, state: &ProcessState, ours: RawHandle) -> &[RawHandle] {
        let new = |index| state.graph_nodes.insert(Arc::new(Node { graph: ours, index })).unwrap_or_default();
        self.handles.get_or_init(|| (0..self.nodes.len()).map(new).collect())
    }
}

/// Lists nodes, or says how many there are where there is no list.
fn list(
    handle: RawHandle,
    out: Out<RawHandle>,
    count: Out<usize>,
    is_listed: impl Fn(&CapturedNode) -> bool,
) -> Answer {
    let state = state()?;
    let graph = state.graphs.get(handle).ok_or(Code::INVALID_VALUE)?;
    count.check()?;
    let handles = graph.handles(state, handle);
    let nodes =
        graph.nodes.iter().zip(handles).filter(|(node, _)| is_listed(node)).map(|(_, handle)| *handle);
    let nodes: Vec<RawHandle> = nodes.collect();
    if out.check().is_err() {
        return count.set(nodes.len());
    }
    // The list has room for `count`; places beyond the nodes are zero.
    let room = count.get()?;
    for index in 0..room {
        out.set_at(index, nodes.get(index).copied().unwrap_or(0))?;
    }
    count.set(room.min(nodes.len()))
}

/// A node of a graph.
pub(crate) struct Node {
    graph: RawHandle,
    index: usize,
}

/// An executable graph; one without nodes has nothing below.
pub(crate) struct GraphExec {
    pub(crate) context: Arc<Context>,
    driver: Arc<dyn Driver>,
    id: Option<GraphId>,
    flags: u64,
}

impl GraphExec {
    /// Takes it back with its context, whose work is done.
    pub(crate) fn end(&self) {
        if let Some(id) = self.id {
            // A lost device keeps nothing.
            let _ = self.driver.destroy(id.into());
        }
    }
}

const AUTO_FREE: u64 =
    sys::CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH.0 as u64;
const DEVICE_LAUNCH: u64 = sys::CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH.0 as u64;
const ALL_FLAGS: u64 = 15;

/// The stream of a handle that may capture: any but the legacy one.
fn stream_below(state: &ProcessState, handle: RawHandle) -> Answer<(Arc<Context>, kiln_driver::StreamId)> {
    match chosen(state, handle)? {
        (_, StreamChoice::Legacy) => Err(CAPTURE_UNSUPPORTED),
        (context, StreamChoice::Stream(stream)) => Ok((context, stream.id)),
    }
}

/// The number of a stream's capture, and the status as the API has it.
fn capture_status(handle: RawHandle) -> Answer<(u64, c_uint)> {
    use sys::CUstreamCaptureStatus as S;
    let state = state()?;
    let (context, choice) = chosen(state, handle)?;
    let mut order = context.order()?;
    let order = order.get()?;
    let stream = order.look(&choice);
    Ok(match order.captures.of(stream) {
        None => (0, S::CU_STREAM_CAPTURE_STATUS_NONE as c_uint),
        Some((id, true)) => (id, S::CU_STREAM_CAPTURE_STATUS_ACTIVE as c_uint),
        Some((id, false)) => (id, S::CU_STREAM_CAPTURE_STATUS_INVALIDATED as c_uint),
    })
}

fn instantiate(out: Out<RawHandle>, handle: RawHandle, flags: u64) -> Answer {
    let state = state()?;
    out.check()?;
    let graph = state.graphs.get(handle).ok_or(Code::INVALID_VALUE)?;
    if flags & !ALL_FLAGS != 0 || flags & AUTO_FREE != 0 && flags & DEVICE_LAUNCH != 0 {
        return Err(Code::INVALID_VALUE);
    }
    if flags & DEVICE_LAUNCH != 0 {
        return Err(Code::NOT_SUPPORTED);
    }
    let driver = graph.context.driver.clone();
    let nodes: Vec<GraphNode<'_>> = graph.nodes.iter().map(CapturedNode::below).collect();
    let id = if nodes.is_empty() { None } else { Some(driver.build_graph(&nodes).or_code()?) };
    let executable = GraphExec { context: graph.context.clone(), driver, id, flags };
    out.set(state.executables.insert(Arc::new(executable)).ok_or(Code::OUT_OF_MEMORY)?)
}

fn executable(state: &ProcessState, handle: RawHandle) -> Answer<Arc<GraphExec>> {
    state.executables.get(handle).ok_or(Code::INVALID_VALUE)
}

driver_api! {
    fn cuStreamBeginCapture_v2 | cuStreamBeginCapture_v2_ptsz (stream: RawHandle, mode: c_uint) {
        let state = state()?;
        let mode = CaptureMode::of(mode)?;
        let (context, below) = stream_below(state, stream)?;
        context.order()?.get()?.captures.begin(below, mode)
    }

    fn cuStreamEndCapture | cuStreamEndCapture_ptsz (stream: RawHandle, out: Out<RawHandle>) {
        let state = state()?;
        out.check()?;
        let (context, below) = stream_below(state, stream)?;
        out.set(0)?;
        let nodes = context.order()?.get()?.captures.end(below)?;
        out.set(state.graphs.insert(Graph::new(context, nodes)).ok_or(Code::OUT_OF_MEMORY)?)
    }

    fn cuStreamIsCapturing | cuStreamIsCapturing_ptsz (stream: RawHandle, status: Out<c_uint>) {
        status.check()?;
        status.set(capture_status(stream)?.1)
    }

    fn cuStreamGetCaptureInfo_v2 | cuStreamGetCaptureInfo_v2_ptsz (
        stream: RawHandle,
        status: Out<c_uint>,
        id: Out<c_ulonglong>,
        graph: Out<RawHandle>,
        nodes: Out<usize>,
        count: Out<usize>
    ) {
        let (number, current) = capture_status(stream)?;
        graph.set_if_wanted(0);
        nodes.set_if_wanted(0);
        count.set_if_wanted(0);
        id.set_if_wanted(number);
        status.set(current)
    }

    fn cuStreamGetCaptureInfo_v3 | cuStreamGetCaptureInfo_v3_ptsz (
        stream: RawHandle,
        status: Out<c_uint>,
        id: Out<c_ulonglong>,
        graph: Out<RawHandle>,
        nodes: Out<usize>,
        edges: Out<usize>,
        count: Out<usize>
    ) {
        let (number, current) = capture_status(stream)?;
        graph.set_if_wanted(0);
        nodes.set_if_wanted(0);
        edges.set_if_wanted(0);
        count.set_if_wanted(0);
        id.set_if_wanted(number);
        status.set(current)
    }

    fn cuGraphCreate(out: Out<RawHandle>, flags: c_uint) {
        let (state, context) = current()?;
        out.check()?;
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        out.set(state.graphs.insert(Graph::new(context, Vec::new())).ok_or(Code::OUT_OF_MEMORY)?)
    }

    fn cuGraphDestroy(handle: RawHandle) {
        let state = state()?;
        state.graphs.remove(handle).ok_or(Code::INVALID_VALUE)?;
        state.graph_nodes.remove_where(|node| node.graph == handle);
        Ok(())
    }

    fn cuGraphClone(out: Out<RawHandle>, handle: RawHandle) {
        let state = state()?;
        out.check()?;
        let graph = state.graphs.get(handle).ok_or(Code::INVALID_VALUE)?;
        let copy = Graph::new(graph.context.clone(), graph.nodes.clone());
        out.set(state.graphs.insert(copy).ok_or(Code::OUT_OF_MEMORY)?)
    }

    fn cuGraphGetNodes(handle: RawHandle, out: Out<RawHandle>, count: Out<usize>) {
        list(handle, out, count, |_| true)
    }

    fn cuGraphGetRootNodes(handle: RawHandle, out: Out<RawHandle>, count: Out<usize>) {
        list(handle, out, count, CapturedNode::is_root)
    }

    fn cuGraphNodeGetType(handle: RawHandle, kind: Out<c_uint>) {
        let state = state()?;
        kind.check()?;
        let node = state.graph_nodes.get(handle).ok_or(Code::INVALID_VALUE)?;
        let graph = state.graphs.get(node.graph).ok_or(Code::INVALID_VALUE)?;
        kind.set(graph.nodes.get(node.index).ok_or(Code::INVALID_VALUE)?.kind() as c_uint)
    }

    fn cuGraphInstantiateWithFlags(out: Out<RawHandle>, graph: RawHandle, flags: c_ulonglong) {
        instantiate(out, graph, flags)
    }

    fn cuGraphExecGetFlags(handle: RawHandle, flags: Out<c_ulonglong>) {
        flags.set(executable(state()?, handle)?.flags)
    }

    fn cuGraphUpload | cuGraphUpload_ptsz (handle: RawHandle, stream: RawHandle) {
        let state = state()?;
        executable(state, handle)?;
        chosen(state, stream).map(|_| ())
    }

    fn cuGraphLaunch | cuGraphLaunch_ptsz (handle: RawHandle, stream: RawHandle) {
        let state = state()?;
        let executable = executable(state, handle)?;
        let (context, choice) = chosen(state, stream)?;
        if context.device != executable.context.device {
            return Err(Code::INVALID_VALUE);
        }
        match executable.id {
            Some(id) => context.order()?.get()?.submit(&choice, &Command::Graph(id)),
            None => Ok(()),
        }
    }

    fn cuGraphExecDestroy(handle: RawHandle) {
        let state = state()?;
        let gone = state.executables.remove(handle).ok_or(Code::INVALID_VALUE)?;
        let Some(id) = gone.id else { return Ok(()) };
        // Launches that are queued may still need it, which is allowed.
        if gone.context.is_there() {
            gone.context.synchronize()?;
        }
        gone.driver.destroy(id.into()).or_code()
    }
}
