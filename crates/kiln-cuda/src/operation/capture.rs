//! Operations in graphs: what one queues, captured as a graph.

use std::sync::{Arc, PoisonError};

use cudarc::driver::sys;
use kiln_driver::{Error, Result};

use super::{LoadedOperation, OperationArguments};
use crate::context::Context;
use crate::convert as driver_convert;
use crate::device::CudaDevice;
use crate::libcuda_symbols::Api;
use crate::native_handle::Native;

/// Calls that other threads make meanwhile are neither captured nor refused.
const RELAXED: u32 = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED as u32;

/// A stream on which nothing runs: work is captured on it.
pub(crate) struct CaptureStream {
    raw: Native<sys::CUstream_st>,
    context: Arc<Context>,
}

/// What an operation queues, as a graph.
pub(crate) struct CapturedGraph {
    raw: Native<sys::CUgraph_st>,
    context: Arc<Context>,
}

impl CudaDevice {
    /// Captures what an operation queues with these arguments.
    pub(crate) fn capture_operation(
        &self,
        call: &'static str,
        api: &Api,
        operation: &LoadedOperation,
        arguments: &OperationArguments<'_>,
    ) -> Result<CapturedGraph> {
        if operation.waits_for_device() {
            return Err(operation.not_captured(call));
        }
        let (Some(begin), Some(end)) = (api.stream_begin_capture, api.stream_end_capture) else {
            return Err(Error::unsupported(
                call,
                "a library operation in a graph",
                "the driver cannot capture",
            ));
        };
        let mut kept = self.capture.lock().unwrap_or_else(PoisonError::into_inner);
        let stream = match &*kept {
            Some(stream) => stream,
            None => kept.insert(CaptureStream::create(call, api, &self.context)?),
        };
        // SAFETY: the lock keeps other threads from the stream.
        self.context.check(call, unsafe { begin(stream.raw.raw(), RELAXED) })?;
        // SAFETY: nothing is run now; the caller that adds the node vouched for the addresses.
        let queued = unsafe { operation.queue(stream.raw.raw(), arguments) };
        let mut raw = Native::NULL;
        // SAFETY: the capture was begun above, and the out-parameter is a live local.
        let status = unsafe { end(stream.raw.raw(), raw.slot()) };
        let captured = (raw != Native::NULL).then(|| CapturedGraph { raw, context: self.context.clone() });
        queued.map_err(|failure| failure.error(call, operation.name()))?;
        self.context.check(call, status)?;
        captured
            .ok_or_else(|| Error::unsupported(call, "a library operation in a graph", "nothing was captured"))
    }
}

impl CaptureStream {
    fn create(call: &'static str, api: &Api, context: &Arc<Context>) -> Result<Self> {
        let mut raw = Native::NULL;
        // SAFETY: the out-parameter is a live local and the context is current.
        let status = unsafe { (api.stream_create)(raw.slot(), driver_convert::NON_BLOCKING, 0) };
        context.check(call, status)?;
        Ok(Self { raw, context: context.clone() })
    }
}

impl CapturedGraph {
    /// The graph as libcuda takes it.
    pub(crate) fn raw(&self) -> sys::CUgraph {
        self.raw.raw()
    }
}

impl Drop for CaptureStream {
    fn drop(&mut self) {
        // SAFETY: this is the only owner, and nothing was ever queued.
        self.context.release(|api| unsafe { (api.stream_destroy)(self.raw.raw()) });
    }
}

impl Drop for CapturedGraph {
    fn drop(&mut self) {
        // SAFETY: this is the only owner; a graph it became a node of has its own copy.
        self.context.release(|api| unsafe { (api.graph_destroy)(self.raw.raw()) });
    }
}
