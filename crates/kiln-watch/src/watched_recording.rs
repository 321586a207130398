//! A recording that is read while it is looked at.
//!
//! One thread reads; any number of others ask. Reading holds the lock for a few thousand events at a time.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use kiln_trace::ReadError;
use serde::Serialize;

use crate::collective_totals::CollectiveTotals;
use crate::decoded_page::{DecodedPage, PageCache};
use crate::device_facts::DeviceFacts;
use crate::finding_note::FindingNote;
use crate::follower::{Follower, Step};
use crate::heap_change_note::HeapChangeNote;
use crate::memory_series::MemoryCurve;
use crate::page_table::Page;
use crate::post_mortem_note::PostMortemNote;
use crate::recording_index::{FaultNote, RecordingIndex, RefusalNote, TakeoverNote};
use crate::recording_source::RecordingSource;
use crate::timeline_row::TimelineRow;
use crate::watch_error::WatchError;
use crate::worker_note::WorkerNote;

/// Events that are read under one lock.
const BATCH: usize = 4096;

/// A recording that is read while it is looked at.
pub struct WatchedRecording {
    path: PathBuf,
    follower: Mutex<Follower>,
    shared: RwLock<Shared>,
    cache: Mutex<PageCache>,
    pub(crate) explained: Mutex<Option<(u64, String)>>,
}

/// What is known so far.
#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) index: RecordingIndex,
    pub(crate) source: Option<RecordingSource>,
    /// Grows with each change.
    pub(crate) version: u64,
    /// Where the first block begins that was not read.
    pub(crate) at: u64,
    file_bytes: u64,
    /// Whether all that is there was read.
    is_at_end: bool,
    /// Why nothing more can be read, for now.
    problem: Option<String>,
}

/// What a recording is of, and what is known of it so far.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RecordingState {
    /// Grows with each change.
    pub version: u64,
    /// The file.
    pub file: String,
    /// The program.
    pub program: String,
    /// Its number in the operating system.
    pub process: u32,
    /// Whether all times are those of simulated devices.
    pub is_virtual: bool,
    /// Events that were read.
    pub events: u64,
    /// Bytes of the file, and how many were read.
    pub file_bytes: u64,
    /// Bytes that were read.
    pub read_bytes: u64,
    /// Whether all that is there was read.
    pub is_at_end: bool,
    /// Whether the file ends within a block, as that of a program does that runs or was killed.
    pub is_cut: bool,
    /// Whether the program ended its recording itself. Otherwise it runs, was killed, crashed, or ended without its exit handlers (`_exit`).
    pub has_end_mark: bool,
    /// Why nothing more can be read, for now.
    pub problem: Option<String>,
    /// Events that the recording misses.
    pub missing_events: u64,
    /// How many and why, in a sentence.
    pub missing_why: Option<String>,
    /// Blocks that are damaged: where they begin, and what is wrong.
    pub damaged: Vec<(u64, &'static str)>,
    /// When the first thing happened.
    pub begin_ns: u64,
    /// When the last thing ended.
    pub end_ns: u64,
    /// How many names there are.
    pub names: usize,
    /// Rows of the timeline.
    pub rows: Vec<TimelineRow>,
    /// Events of rows that there was no room for.
    pub hidden_events: u64,
    /// The devices.
    pub devices: Vec<DeviceFacts>,
    /// Whether allocations are recorded.
    pub has_memory: bool,
    /// Devices whose memory is known by address.
    pub block_devices: Vec<u32>,
    /// Faults, the first few.
    pub faults: Vec<FaultNote>,
    /// How many faults there are.
    pub fault_count: u64,
    /// Mistakes that the checks of devices found, the first few.
    pub findings: Vec<FindingNote>,
    /// How many there are.
    pub finding_count: u64,
    /// Allocations that were refused, the first few.
    pub refusals: Vec<RefusalNote>,
    /// What the heaps of devices and the driver's pools did, the first few.
    pub heap_changes: Vec<HeapChangeNote>,
    /// Steps of bringing devices back, the first few.
    pub takeovers: Vec<TakeoverNote>,
    /// What is known of the losses of devices, the first few.
    pub post_mortems: Vec<PostMortemNote>,
    /// Worker processes that had the devices, the first few.
    pub workers: Vec<WorkerNote>,
    /// Collectives by operation and rank.
    pub collectives: Vec<CollectiveTotals>,
    /// The command that records the program again; none if the recording does not have it.
    pub repeat: Option<String>,
    /// Whether nothing is missing to run that.
    pub is_repeat_whole: bool,
    /// What is missing, in words.
    pub repeat_lacks: Option<String>,
}

impl WatchedRecording {
    /// A recording at a path. Nothing is read yet.
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            follower: Mutex::new(Follower::new(path)),
            shared: RwLock::default(),
            cache: Mutex::default(),
            explained: Mutex::default(),
        }
    }

    /// Opens the file.
    ///
    /// # Errors
    /// No recording, one of another version, or a file that cannot be read.
    pub fn open(&self) -> Result<(), WatchError> {
        let mut follower = locked(&self.follower);
        follower.open().map_err(|error| self.file_error(error))?;
        let mut shared = self.write();
        shared.source = follower.source().cloned();
        shared.at = follower.at();
        shared.problem = None;
        Ok(())
    }

    /// Reads some of what is new; false if that was all for now. A file that is not there yet, or has no whole start, is waited for, and
    /// one that was replaced is read from its beginning.
    ///
    /// # Errors
    /// A file that is no recording, of another version, or cannot be read.
    pub fn read_more(&self) -> Result<bool, WatchError> {
        let read = self.open().and_then(|()| self.read_batch());
        if let Err(error) = &read {
            let mut shared = self.write();
            shared.problem = Some(error.to_string());
            shared.is_at_end = true;
        }
        match read {
            Err(WatchError::File { error, .. }) if is_not_there_yet(&error) => Ok(false),
            other => other,
        }
    }

    /// Reads all that is there.
    ///
    /// # Errors
    /// As [`WatchedRecording::read_more`].
    pub fn read_all(&self) -> Result<(), WatchError> {
        while self.read_more()? {}
        Ok(())
    }

    /// What is known so far.
    pub fn state(&self) -> RecordingState {
        let shared = self.read();
        let index = &shared.index;
        RecordingState {
            version: shared.version,
            file: self.file(),
            program: index.program.clone(),
            process: index.process,
            is_virtual: index.is_virtual(),
            events: index.events,
            file_bytes: shared.file_bytes,
            read_bytes: shared.at,
            is_at_end: shared.is_at_end,
            is_cut: shared.is_at_end && shared.file_bytes > shared.at && shared.at > 0,
            has_end_mark: index.has_end_mark,
            problem: shared.problem.clone(),
            missing_events: index.missing.events(),
            missing_why: (index.missing.events() > 0).then(|| index.missing.to_string()),
            damaged: index.damaged.clone(),
            begin_ns: index.begin_ns,
            end_ns: index.end_ns,
            names: index.names.len(),
            rows: index.rows.clone(),
            hidden_events: index.hidden_events,
            devices: index.devices(),
            has_memory: !index.memory.is_empty(),
            block_devices: index.blocks.devices(),
            faults: index.faults.clone(),
            fault_count: index.fault_count,
            findings: index.findings.clone(),
            finding_count: index.finding_count,
            refusals: index.refusals.clone(),
            heap_changes: index.heap_changes.clone(),
            takeovers: index.takeovers.clone(),
            post_mortems: PostMortemNote::all(&index.post_mortems),
            workers: index.workers.notes().to_vec(),
            collectives: index.collectives.totals(),
            repeat: index.command.is_known().then(|| {
                let words: [&OsStr; 3] = ["kiln".as_ref(), "watch".as_ref(), self.path.as_os_str()];
                index.command.recorded_under(&words)
            }),
            is_repeat_whole: index.command.is_whole(),
            repeat_lacks: (!index.command.is_whole()).then(|| index.command.lacks().to_string()),
        }
    }

    /// The file, in words.
    pub fn file(&self) -> String {
        self.path.display().to_string()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The names from a number on.
    pub fn names(&self, first: usize) -> Vec<String> {
        self.read().index.names.from(first).map(str::to_owned).collect()
    }

    /// Memory by tag between two times, with at most so many points.
    pub fn memory(&self, begin_ns: u64, end_ns: u64, points: usize) -> Vec<MemoryCurve> {
        self.read().index.memory.curves(begin_ns, end_ns, points)
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Shared> {
        self.shared.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The work of a page, from memory or from the file.
    pub(crate) fn page(&self, shared: &Shared, page: &Page) -> Result<Arc<DecodedPage>, WatchError> {
        if let Some(known) = locked(&self.cache).known(page) {
            return Ok(known);
        }
        let source = self.source(shared)?;
        let decoded = DecodedPage::read(source, page, &shared.index);
        let decoded = Arc::new(decoded.map_err(|error| self.file_error(error))?);
        locked(&self.cache).keep(page, decoded.clone());
        Ok(decoded)
    }

    pub(crate) fn source<'s>(&self, shared: &'s Shared) -> Result<&'s RecordingSource, WatchError> {
        shared.source.as_ref().ok_or(WatchError::Unknown("nothing was read yet"))
    }

    pub(crate) fn file_error(&self, error: ReadError) -> WatchError {
        WatchError::File { path: self.path.clone(), error }
    }

    fn read_batch(&self) -> Result<bool, WatchError> {
        let mut follower = locked(&self.follower);
        let mut shared = self.write();
        let (events, damaged) = (shared.index.events, shared.index.damaged.len());
        let step = follower.read(&mut shared.index, BATCH).map_err(|error| self.file_error(error))?;
        if step == Step::Replaced {
            *shared = Shared { version: shared.version + 1, ..Shared::default() };
            locked(&self.cache).clear();
            return Ok(true);
        }
        shared.at = follower.at().max(shared.at);
        shared.file_bytes = std::fs::metadata(&self.path).map_or(shared.file_bytes, |known| known.len());
        let is_changed = shared.index.events != events || shared.index.damaged.len() != damaged;
        let is_at_end = step == Step::AtEnd;
        if is_changed || is_at_end != shared.is_at_end {
            shared.version += 1;
        }
        shared.is_at_end = is_at_end;
        Ok(!is_at_end)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Shared> {
        self.shared.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a program may still write what is missing.
fn is_not_there_yet(error: &ReadError) -> bool {
    match error {
        ReadError::CutStart | ReadError::Empty => true,
        ReadError::Io(error) => error.kind() == std::io::ErrorKind::NotFound,
        _ => false,
    }
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
