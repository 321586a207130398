//! Records a program that runs: rings in memory, and a thread that writes them to a file.
//!
//! A program pushes events into a [`RecordingLane`], one for each stream, which takes a lock that hardly ever has another owner, and no
//! memory from the heap. A thread takes what is there every [`WRITE_EVERY`], or when a lane is half full, and appends it as a block. The
//! program never waits for the file: what a full lane, a slow disk or a full one has no room for is dropped and counted, and the count
//! is an event of the recording. A disk that has room again is written again.

mod interned_name;
mod lane;
mod recording_file;
mod recording_thread;

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

pub use interned_name::interned_name;
pub use lane::RecordingLane;
pub use recording_file::RecordingFile;
pub use recording_thread::RecordingTotals;

use recording_thread::RecordingThread;

use crate::record::TraceEvent;

/// How often the thread writes what there is.
const WRITE_EVERY: Duration = Duration::from_millis(50);
/// How long the end of a recording waits for the file.
const FINISH_LIMIT: Duration = Duration::from_secs(5);
/// Events that a lane holds.
const LANE_EVENTS: usize = 8192;

/// A recording that is being made. Dropping it writes the rest, and waits no longer than a few seconds for that.
pub struct ProgramRecorder {
    thread: Arc<RecordingThread>,
}

impl ProgramRecorder {
    /// Begins a recording at a path. A file that is there is overwritten.
    ///
    /// # Errors
    /// A file that cannot be written; no thread that can be started.
    pub fn create(path: &Path, first: &[TraceEvent<'static>]) -> io::Result<Self> {
        Self::into_file(File::create(path)?, first)
    }

    /// Begins a recording in a file that is open, at its start.
    ///
    /// # Errors
    /// As for [`create`](Self::create).
    pub fn into_file(file: impl RecordingFile + 'static, first: &[TraceEvent<'static>]) -> io::Result<Self> {
        let thread = Arc::new(RecordingThread::new(Box::new(file))?);
        let recorder = Self { thread };
        let lane = recorder.lane();
        first.iter().for_each(|event| lane.push(*event));
        recorder.thread.start(WRITE_EVERY)?;
        Ok(recorder)
    }

    /// A lane for the events of one stream.
    pub fn lane(&self) -> Arc<RecordingLane> {
        self.thread.lane(LANE_EVENTS)
    }

    /// Waits until everything pushed so far was written or dropped; false if that takes longer.
    pub fn flush(&self, limit: Duration) -> bool {
        self.thread.flush(limit)
    }

    /// What was recorded so far.
    pub fn totals(&self) -> RecordingTotals {
        self.thread.totals()
    }
}

impl Drop for ProgramRecorder {
    fn drop(&mut self) {
        self.thread.stop(FINISH_LIMIT);
    }
}

/// A lock whose owner panicked is as good as any: what it guards are numbers and events.
fn locked<T>(lock: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}
