//! Writes down every call, so that it can be read, compared and run again.

use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::forwarding::Layer;
use crate::call::{Answer, Call};
use crate::call_trace::{Entry, RecordedAnswer, RecordedCall, header_line};
use crate::driver::Driver;
use crate::error::{Error, Result};
use crate::handle::DeviceKey;

/// A layer that writes a [trace](crate::call_trace): one line for each call with its answer, in the order in which the calls
/// came back. Nothing is written for calls that only read what is fixed.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use kiln_driver::layer::{Layered, RecordingLayer, TraceBuffer};
/// use kiln_driver::call_trace::{Trace, replay};
/// use kiln_driver::{Driver, DriverExt, StreamRequest};
///
/// # let device = kiln_sim::Machine::new(kiln_sim::MachineConfig::seeded(1)).device(0)?;
/// # let another = kiln_sim::Machine::new(kiln_sim::MachineConfig::seeded(2)).device(0)?;
/// let buffer = TraceBuffer::default();
/// let driver = Layered::new(device, RecordingLayer::to(buffer.clone()));
/// let stream = driver.create_stream(StreamRequest::New { priority: 0 })?;
/// driver.synchronize(stream)?;
/// driver.destroy(stream.into())?;
/// driver.layer().finish()?;
///
/// let trace = Trace::parse(&buffer.text())?;
/// assert_eq!(trace.len(), 3);
/// assert!(replay(&trace, &*another).is_faithful());
/// # Ok(())
/// # }
/// ```
pub struct RecordingLayer {
    device: OnceLock<DeviceKey>,
    sink: Mutex<Sink>,
}

struct Sink {
    writer: Box<dyn Write + Send>,
    lines: u64,
    failure: Option<io::Error>,
}

impl RecordingLayer {
    /// A recording that is written to a file, a pipe or a [`TraceBuffer`].
    pub fn to(writer: impl Write + Send + 'static) -> Self {
        let mut sink = Sink { writer: Box::new(writer), lines: 0, failure: None };
        sink.line(&header_line());
        Self { device: OnceLock::new(), sink: Mutex::new(sink) }
    }

    /// Flushes what was written.
    ///
    /// # Errors
    /// What went wrong with the writer, now or at an earlier line; nothing was written after that line.
    pub fn finish(&self) -> io::Result<()> {
        let mut sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
        match sink.failure.take() {
            Some(failure) => Err(failure),
            None => sink.writer.flush(),
        }
    }
}

impl Layer for RecordingLayer {
    fn before(&self, driver: &dyn Driver, _: &Call<'_>) -> Result<()> {
        self.device.get_or_init(|| driver.info().key);
        Ok(())
    }

    fn after(&self, call: &Call<'_>, answer: std::result::Result<Answer<'_>, &Error>) {
        let Some(here) = self.device.get() else { return };
        let entry = Entry { call: RecordedCall::of(call, *here), answer: RecordedAnswer::of(answer, *here) };
        self.sink.lock().unwrap_or_else(PoisonError::into_inner).push(&entry);
    }
}

impl Sink {
    fn push(&mut self, entry: &Entry) {
        match serde_json::to_string(entry) {
            Ok(line) => self.line(&line),
            Err(error) => self.failure = self.failure.take().or(Some(error.into())),
        }
        self.lines += 1;
    }

    fn line(&mut self, line: &str) {
        if self.failure.is_none() {
            self.failure = writeln!(self.writer, "{line}").err();
        }
    }
}

impl fmt::Debug for RecordingLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
        write!(f, "recording: {} calls", sink.lines)
    }
}

/// A trace in memory; all clones are the same buffer.
#[derive(Clone, Default)]
pub struct TraceBuffer {
    bytes: Arc<Mutex<Vec<u8>>>,
}

impl TraceBuffer {
    /// What was written so far.
    pub fn text(&self) -> String {
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Write for TraceBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for TraceBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        write!(f, "a trace of {} bytes", bytes.len())
    }
}
