//! Work captured as a graph by the driver alone, and its time on the device.

use cudarc::driver::sys;

use crate::Failure;
use crate::raw_driver::{self, Raw};

/// A graph of what was queued on a stream while it was captured, with events to take its time. It lives as long as the process.
pub(crate) struct RawGraph {
    executable: sys::CUgraphExec,
    stream: sys::CUstream,
    start: sys::CUevent,
    end: sys::CUevent,
}

impl RawGraph {
    /// Captures what `queue` queues on the stream, so many times.
    pub(crate) fn capture(
        raw: &Raw,
        stream: sys::CUstream,
        times: usize,
        mut queue: impl FnMut() -> Result<(), Failure>,
    ) -> Result<Self, Failure> {
        let (start, end) = (raw.timed_event()?, raw.timed_event()?);
        raw_driver::begin_capture(stream)?;
        let queued = (0..times).try_for_each(|_| queue());
        // The capture is ended even if what was queued was refused.
        let executable = raw_driver::end_capture(stream);
        queued?;
        Ok(Self { executable: executable?, stream, start, end })
    }

    /// Queues it.
    pub(crate) fn launch(&self) -> Result<(), Failure> {
        raw_driver::launch_graph(self.executable, self.stream)
    }

    /// Runs it, and gives its time between two events in nanoseconds.
    pub(crate) fn run_timed(&self) -> Result<f64, Failure> {
        raw_driver::record(self.start, self.stream)?;
        self.launch()?;
        raw_driver::record(self.end, self.stream)?;
        raw_driver::synchronize(self.stream)?;
        raw_driver::elapsed_ns(self.start, self.end)
    }
}
