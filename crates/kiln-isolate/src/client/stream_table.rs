//! The submission numbers of streams, by the id that both sides use.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kiln_driver::{Progress, StreamId, Submission};

use crate::protocol::progress_cells::ProgressCell;
use crate::protocol::segment::Segment;

/// How far a stream is, as the client knows it.
#[derive(Debug)]
pub(crate) struct StreamCount {
    /// The id that both sides use.
    pub(crate) wire: u64,
    pub(crate) cell: Arc<ProgressCell>,
    /// The last submission; changed under the lock of the ring.
    pub(crate) submitted: AtomicU64,
    /// The worker was asked to query the stream until it is this far.
    pub(crate) watched: AtomicU64,
    /// Known to be done without the cell: a later event is done, or the worker was replaced.
    known: AtomicU64,
}

impl StreamCount {
    pub(crate) fn new(wire: u64, cell: Arc<ProgressCell>) -> Self {
        Self {
            wire,
            cell,
            submitted: AtomicU64::new(0),
            watched: AtomicU64::new(0),
            known: AtomicU64::new(0),
        }
    }

    /// What is known to be done. More than was submitted is a protocol violation.
    pub(crate) fn completed(&self, segment: &Segment) -> u64 {
        self.cell.read(segment).unwrap_or(0).max(self.known.load(Ordering::Acquire))
    }

    /// Records that everything up to a submission is done.
    pub(crate) fn learn(&self, number: u64) {
        self.known.fetch_max(number, Ordering::AcqRel);
    }

    pub(crate) fn progress(&self, segment: &Segment) -> Progress {
        // In this order, so that the completed number is never ahead of the submitted one.
        let completed = self.completed(segment);
        let submitted = self.submitted.load(Ordering::Acquire);
        Progress { submitted: Submission(submitted), completed: Submission(completed) }
    }

    /// Whether the worker must be asked to query the stream that far; if so, it counts as asked.
    pub(crate) fn needs_watch(&self, number: u64) -> bool {
        self.watched.fetch_max(number, Ordering::AcqRel) < number
    }
}

/// The streams of a client.
#[derive(Debug, Default)]
pub(crate) struct StreamTable {
    streams: Mutex<HashMap<u64, (StreamId, Arc<StreamCount>)>>,
}

impl StreamTable {
    pub(crate) fn insert(&self, id: StreamId, count: Arc<StreamCount>) {
        self.lock().insert(count.wire, (id, count));
    }

    pub(crate) fn remove(&self, wire: u64) {
        self.lock().remove(&wire);
    }

    /// The client's handle of a stream.
    pub(crate) fn name(&self, wire: u64) -> Option<StreamId> {
        self.lock().get(&wire).map(|(id, _)| *id)
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<(StreamId, Arc<StreamCount>)> {
        self.lock().values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, (StreamId, Arc<StreamCount>)>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
