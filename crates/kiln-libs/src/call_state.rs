//! What every call asks before it does anything, also where there is nothing to do: whether the device takes work, and whether stream and graph are its own.

use kiln_runtime::internal::{check_ready as runtime_ready, check_stream as runtime_stream, is_same_runtime};
use kiln_runtime::{DeviceRuntime, GraphBuilder, Stream};

use crate::Result;
use crate::error::LibraryError;

/// Refuses a device that takes no work: it is lost, or its runtime was shut down.
pub(crate) fn check_ready(gpu: &DeviceRuntime, call: &'static str) -> Result<()> {
    Ok(runtime_ready(gpu).map_err(|error| error.within(call))?)
}

/// Refuses a device that takes no work, and a stream of another runtime.
pub(crate) fn check_stream(gpu: &DeviceRuntime, call: &'static str, stream: Option<&Stream>) -> Result<()> {
    check_ready(gpu, call)?;
    let Some(stream) = stream else { return Ok(()) };
    Ok(runtime_stream(stream, gpu).map_err(|error| error.within(format!("{call}: `stream`")))?)
}

/// Refuses a device that takes no work, and a graph or a stream of another runtime.
pub(crate) fn check_graph(
    gpu: &DeviceRuntime,
    call: &'static str,
    graph: &GraphBuilder,
    stream: Option<&Stream>,
) -> Result<()> {
    check_stream(gpu, call, stream)?;
    if is_same_runtime(graph.runtime(), gpu) {
        return Ok(());
    }
    let what = "`graph` belongs to another runtime";
    Err(LibraryError::argument(call, what, "record into a graph of the runtime of this handle"))
}
