//! Captures of streams: begun, asked about and ended.

use std::ffi::{c_uint, c_ulonglong};
use std::sync::Arc;

use cudarc::driver::sys;
use kiln_driver::Code;

use crate::boundary::Answer;
use crate::caller_memory::Out;
use crate::calls::capture::{CAPTURE_UNSUPPORTED, CaptureMode};
use crate::calls::context::Context;
use crate::calls::graphs::Graph;
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
        let body = context.order()?.get()?.captures.end(below)?;
        out.set(state.graphs.insert(Graph::new(context, body)).ok_or(Code::OUT_OF_MEMORY)?)
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
}
