//! Captures of streams: begun, asked about and ended.

use std::cell::RefCell;
use std::ffi::{c_uint, c_ulonglong};
use std::sync::Arc;

use cudarc::driver::sys;
use kiln_driver::Code;

use crate::boundary::Answer;
use crate::caller_memory::{In, Out};
use crate::calls::capture::{CAPTURE_IMPLICIT, CAPTURE_UNSUPPORTED, CaptureGraph, CaptureMode, CaptureState};
use crate::calls::context::Context;
use crate::calls::graph_body::GraphBody;
use crate::calls::graphs::{Graph, graph};
use crate::calls::process_state::{ProcessState, state};
use crate::calls::stream_order::StreamChoice;
use crate::calls::streams::chosen;
use crate::handle_table::RawHandle;

/// The stream of a handle that may capture: any but the legacy one.
fn stream_below(state: &ProcessState, handle: RawHandle) -> Answer<(Arc<Context>, kiln_driver::StreamId)> {
    match chosen(state, handle)? {
        (_, StreamChoice::Legacy) => Err(CAPTURE_UNSUPPORTED),
        (context, StreamChoice::Stream(stream)) => Ok((context, stream.id)),
    }
}

/// The capture of a stream, as far as it has one.
fn capture_of(state: &ProcessState, handle: RawHandle) -> Answer<Option<CaptureState>> {
    let (context, choice) = chosen(state, handle)?;
    let mut order = context.order()?;
    let order = order.get()?;
    if matches!(choice, StreamChoice::Legacy) && order.is_legacy_unusable() {
        return Err(CAPTURE_IMPLICIT);
    }
    Ok(order.captures.of(order.look(&choice)))
}

/// The status as the API has it.
fn status_of(capture: Option<&CaptureState>) -> c_uint {
    use sys::CUstreamCaptureStatus as S;
    match capture {
        None => S::CU_STREAM_CAPTURE_STATUS_NONE as c_uint,
        Some(capture) if capture.is_valid => S::CU_STREAM_CAPTURE_STATUS_ACTIVE as c_uint,
        Some(_) => S::CU_STREAM_CAPTURE_STATUS_INVALIDATED as c_uint,
    }
}

/// Begins a capture; a graph that it made goes again if that fails.
fn begin(stream: RawHandle, mode: c_uint, graph: Option<CaptureGraph>, after: Vec<u32>) -> Answer {
    let state = state()?;
    let mode = CaptureMode::of(mode)?;
    let (context, below) = stream_below(state, stream)?;
    let graph = match graph {
        Some(graph) => graph,
        None => {
            let graph = Graph::new(context.clone(), GraphBody::default());
            let handle = state.graphs.insert(graph.clone()).ok_or(Code::OUT_OF_MEMORY)?;
            CaptureGraph { handle, graph, is_own: true }
        }
    };
    let begun = context.order()?.get()?.captures.begin(below, mode, graph.clone(), after);
    if begun.is_err() && graph.is_own {
        state.graphs.remove(graph.handle);
    }
    begun
}

/// The numbers of nodes that a program names, all of one graph.
fn numbers(
    state: &ProcessState,
    graph: RawHandle,
    nodes: In<RawHandle>,
    data: In<[u8; 8]>,
    count: usize,
) -> Answer<Vec<u32>> {
    let mut numbers = Vec::new();
    for index in 0..count {
        if !data.is_null() && data.at(index)? != [0; 8] {
            return Err(Code::NOT_SUPPORTED);
        }
        let node = state.graph_nodes.get(nodes.at(index)?).filter(|node| node.graph == graph);
        let number = node.ok_or(Code::INVALID_VALUE)?.number;
        if numbers.contains(&number) {
            return Err(Code::INVALID_VALUE);
        }
        numbers.push(number);
    }
    Ok(numbers)
}

thread_local! {
    /// The list that the thread was last told; it holds until the next question.
    static TOLD: RefCell<Vec<RawHandle>> = const { RefCell::new(Vec::new()) };
}

/// Keeps the list until the thread's next question; says where it is, 0 if it is empty.
fn keep_told(list: Vec<RawHandle>) -> usize {
    let address = if list.is_empty() { 0 } else { list.as_ptr().addr() };
    let mut list = Some(list);
    let kept = TOLD.try_with(|told| told.replace(list.take().unwrap_or_default()));
    // A thread that ends, and asks from `atexit` or a destructor, has no place for it any more; the program may read it nevertheless.
    if kept.is_err()
        && let Some(list) = list
    {
        list.leak();
    }
    address
}

/// Tells of a capture: its graph, and the nodes that the next one comes after.
fn tell(
    stream: RawHandle,
    (status, id): (Out<c_uint>, Out<c_ulonglong>),
    (graph, nodes): (Out<RawHandle>, Out<usize>),
    count: Out<usize>,
) -> Answer {
    let state = state()?;
    status.check()?;
    let capture = capture_of(state, stream)?;
    if capture.is_none() {
        // The other places stay as they are, as with the driver.
        return status.set(status_of(None));
    }
    let active = capture.as_ref().filter(|capture| capture.is_valid);
    let list = match active {
        Some(CaptureState { graph: own, reached, .. }) => {
            let handle = |number: &u32| own.graph.handle(state, own.handle, *number);
            reached.iter().map(handle).collect::<Answer<Vec<RawHandle>>>()?
        }
        None => Vec::new(),
    };
    graph.set_if_wanted(active.map_or(0, |capture| capture.graph.handle));
    count.set_if_wanted(list.len());
    nodes.set_if_wanted(keep_told(list));
    id.set_if_wanted(capture.as_ref().map_or(0, |capture| capture.id));
    status.set(status_of(capture.as_ref()))
}

/// Changes which nodes the next one of a capture comes after.
fn update(stream: RawHandle, nodes: (In<RawHandle>, In<[u8; 8]>), count: usize, flags: c_uint) -> Answer {
    const ADD: c_uint =
        sys::CUstreamUpdateCaptureDependencies_flags::CU_STREAM_ADD_CAPTURE_DEPENDENCIES as c_uint;
    const SET: c_uint =
        sys::CUstreamUpdateCaptureDependencies_flags::CU_STREAM_SET_CAPTURE_DEPENDENCIES as c_uint;
    let state = state()?;
    let (context, choice) = chosen(state, stream)?;
    let capture = capture_of(state, stream)?.ok_or(Code::ILLEGAL_STATE)?;
    let given = numbers(state, capture.graph.handle, nodes.0, nodes.1, count)?;
    let all = match flags {
        SET => given,
        ADD => {
            let mut all = capture.reached;
            all.extend(given);
            all.sort_unstable();
            all.dedup();
            all
        }
        _ => return Err(Code::INVALID_VALUE),
    };
    let mut order = context.order()?;
    let order = order.get()?;
    let below = order.look(&choice);
    order.captures.set_reached(below, all)
}

driver_api! {
    fn cuStreamBeginCapture_v2 | cuStreamBeginCapture_v2_ptsz (stream: RawHandle, mode: c_uint) {
        begin(stream, mode, None, Vec::new())
    }

    fn cuStreamBeginCaptureToGraph | cuStreamBeginCaptureToGraph_ptsz (
        stream: RawHandle, handle: RawHandle, nodes: In<RawHandle>, data: In<[u8; 8]>, count: usize, mode: c_uint
    ) {
        let state = state()?;
        let graph = graph(state, handle)?;
        let after = numbers(state, handle, nodes, data, count)?;
        let (context, _) = chosen(state, stream)?;
        if context.device != graph.context.device {
            return Err(Code::INVALID_VALUE);
        }
        begin(stream, mode, Some(CaptureGraph { handle, graph, is_own: false }), after)
    }

    fn cuStreamEndCapture | cuStreamEndCapture_ptsz (stream: RawHandle, out: Out<RawHandle>) {
        let state = state()?;
        out.check()?;
        let (context, below) = stream_below(state, stream)?;
        out.set(0)?;
        let (graph, ended) = context.order()?.get()?.captures.end(below)?;
        if ended.is_err() && graph.is_own {
            state.graphs.remove(graph.handle);
            state.graph_nodes.remove_where(|node| node.graph == graph.handle);
        }
        ended?;
        out.set(graph.handle)
    }

    fn cuStreamIsCapturing | cuStreamIsCapturing_ptsz (stream: RawHandle, status: Out<c_uint>) {
        status.check()?;
        status.set(status_of(capture_of(state()?, stream)?.as_ref()))
    }

    fn cuStreamGetCaptureInfo | cuStreamGetCaptureInfo_ptsz (stream: RawHandle, status: Out<c_uint>, id: Out<c_ulonglong>) {
        tell(stream, (status, id), (no_place(), no_place()), no_place())
    }

    fn cuStreamGetCaptureInfo_v2 | cuStreamGetCaptureInfo_v2_ptsz (
        stream: RawHandle,
        status: Out<c_uint>,
        id: Out<c_ulonglong>,
        graph: Out<RawHandle>,
        nodes: Out<usize>,
        count: Out<usize>
    ) {
        tell(stream, (status, id), (graph, nodes), count)
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
        // No edge has data.
        edges.set_if_wanted(0);
        tell(stream, (status, id), (graph, nodes), count)
    }

    fn cuStreamUpdateCaptureDependencies | cuStreamUpdateCaptureDependencies_ptsz (
        stream: RawHandle, nodes: In<RawHandle>, count: usize, flags: c_uint
    ) {
        update(stream, (nodes, In::null()), count, flags)
    }

    fn cuStreamUpdateCaptureDependencies_v2 | cuStreamUpdateCaptureDependencies_v2_ptsz (
        stream: RawHandle, nodes: In<RawHandle>, data: In<[u8; 8]>, count: usize, flags: c_uint
    ) {
        update(stream, (nodes, data), count, flags)
    }
}

fn no_place<T: Copy>() -> Out<T> {
    Out::at(std::ptr::null_mut())
}
