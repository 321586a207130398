//! Records a program that runs: rings in memory, and a thread that writes them to a file.
//!
//! What a stream does goes into a [`StreamLane`]: a ring of short notes, with numbers for names and ticks for times, for which no thread
//! ever waits. What happens seldom is pushed as an event into a [`RecordingLane`], which takes a lock. Neither takes memory from the heap. A
//! thread takes what is there every [`WRITE_EVERY`], or when a lane is half full, makes events of notes and appends them as a block. The
//! program never waits for the file: what a full lane, a slow disk or a full one has no room for is dropped and counted, and the count
//! is an event of the recording. A disk that has room again is written again. A limit of the process on the size of a file is asked for before
//! each write, because a write beyond it would end the program by a signal.
//!
//! A file has one writer: it is locked as long as it is written, and a second recorder is refused, in this process or another. A program may close
//! descriptors that it did not open, and its own file may have the number then: each write looks whether the file is still the one that was
//! opened, and otherwise the recording ends there ([`RecordingFailure::FileClosed`]). When a
//! recording ends, a mark says so; without it, the program was killed or crashed.

mod address_table;
mod held_waits;
mod interned_name;
mod known_name;
mod lane;
mod locked_file;
mod output;
mod recording_failure;
mod recording_file;
mod recording_thread;
mod slot_ring;
mod stream_lane;
mod stream_note;
mod tick_scale;
mod untold_events;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

pub use interned_name::interned_name;
pub use known_name::{KnownLine, KnownName};
pub use lane::RecordingLane;
pub use locked_file::is_being_recorded;
pub use recording_failure::RecordingFailure;
pub use recording_file::RecordingFile;
pub use recording_thread::RecordingTotals;
pub use stream_lane::StreamLane;
pub use stream_note::{CollectiveNote, SubmissionNote, WaitNote};
pub use tick_scale::{NanosecondTicks, TickScale};

use recording_thread::RecordingThread;

use crate::record::{TraceEvent, TraceStream};

/// How often the thread writes what there is.
const WRITE_EVERY: Duration = Duration::from_millis(50);
/// How long the end of a recording waits for the file.
const FINISH_LIMIT: Duration = Duration::from_secs(5);
/// Events that a lane holds, and notes that one of a stream does.
const LANE_EVENTS: usize = 8192;

/// A recording that is being made. Dropping it writes the rest and the mark of the end, if that is not there yet, and waits no longer than a
/// few seconds for that.
pub struct ProgramRecorder {
    thread: Arc<RecordingThread>,
    path: Option<PathBuf>,
}

impl ProgramRecorder {
    /// Begins a recording at a path. A file that is there is overwritten, unless it is being written.
    ///
    /// # Errors
    /// A file that another recorder writes, in this process or another, which is left alone ([`ResourceBusy`](io::ErrorKind::ResourceBusy)); a
    /// file that cannot be written; no thread that can be started.
    pub fn create(path: &Path, first: &[TraceEvent<'static>]) -> io::Result<Self> {
        let begun = Self::begin(locked_file::create(path)?, first, Some(path.to_owned()));
        if begun.is_err() && path.metadata().is_ok_and(|known| known.is_file() && known.len() == 0) {
            // An empty file would be taken for a recording of nothing.
            let _ = std::fs::remove_file(path);
        }
        begun
    }

    /// Begins a recording in a file that is open, at its start.
    ///
    /// # Errors
    /// As for [`create`](Self::create).
    pub fn into_file(file: impl RecordingFile + 'static, first: &[TraceEvent<'static>]) -> io::Result<Self> {
        Self::begin(file, first, None)
    }

    fn begin(
        file: impl RecordingFile + 'static,
        first: &[TraceEvent<'static>],
        path: Option<PathBuf>,
    ) -> io::Result<Self> {
        let thread = Arc::new(RecordingThread::new(Box::new(file))?);
        let lane = thread.lane(LANE_EVENTS);
        first.iter().for_each(|event| lane.push(*event));
        thread.start(WRITE_EVERY)?;
        Ok(Self { thread, path })
    }

    /// Where it is written; none for a file that was open.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// A lane for events that happen seldom.
    pub fn lane(&self) -> Arc<RecordingLane> {
        self.thread.lane(LANE_EVENTS)
    }

    /// A lane for what a stream does, whose times are in ticks of a scale.
    pub fn stream_lane(&self, stream: TraceStream, scale: Arc<dyn TickScale>) -> Arc<StreamLane> {
        self.thread.stream_lane(stream, scale, LANE_EVENTS)
    }

    /// Waits until everything pushed so far was written or dropped; false if that takes longer.
    pub fn flush(&self, limit: Duration) -> bool {
        self.thread.flush(limit)
    }

    /// Writes everything pushed so far and the mark of the end, for a recorder that is kept; false if that takes longer. Another device may follow
    /// the mark, and needs another mark.
    pub fn mark_end(&self, time_ns: u64, limit: Duration) -> bool {
        self.thread.mark_end(time_ns, limit)
    }

    /// As [`mark_end`](Self::mark_end), and closes the file: what is pushed from here on is lost.
    pub fn finish(&self, time_ns: u64, limit: Duration) -> bool {
        self.thread.finish(time_ns, limit)
    }

    /// Writes the rest, and the mark of the end if that is not there yet, and closes the file: what is pushed from here on is lost. False if that takes longer.
    pub fn close(&self, limit: Duration) -> bool {
        self.thread.stop(limit)
    }

    /// What was recorded so far.
    pub fn totals(&self) -> RecordingTotals {
        self.thread.totals()
    }
}

impl Drop for ProgramRecorder {
    fn drop(&mut self) {
        let _ = self.thread.stop(FINISH_LIMIT);
    }
}

/// A lock whose owner panicked is as good as any: what it guards are numbers and events.
fn locked<T>(lock: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}
