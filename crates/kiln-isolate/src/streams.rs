//! Streams as the client counts them, found by the number both sides know.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kiln_driver::{Progress, StreamId, Submission};

use crate::area::Area;
use crate::cells::Cell;

/// How far a stream is, on this side.
#[derive(Debug)]
pub(crate) struct StreamCount {
    /// The number both sides know it by.
    pub(crate) wire: u64,
    pub(crate) cell: Arc<Cell>,
    /// The newest submission; changed by whoever holds the way into the ring.
    pub(crate) submitted: AtomicU64,
    /// The worker was asked to tell when the stream is this far.
    pub(crate) watched: AtomicU64,
    /// Known to be done by other means than the cell: an event behind it is done, or its worker is gone.
    known: AtomicU64,
}

impl StreamCount {
    pub(crate) fn new(wire: u64, cell: Arc<Cell>) -> Self {
        Self {
            wire,
            cell,
            submitted: AtomicU64::new(0),
            watched: AtomicU64::new(0),
            known: AtomicU64::new(0),
        }
    }

    /// What is known to be done. More than was submitted is a lie of the worker's.
    pub(crate) fn completed(&self, area: &Area) -> u64 {
        self.cell.read(area).unwrap_or(0).max(self.known.load(Ordering::Acquire))
    }

    /// Notes that everything up to a submission is done.
    pub(crate) fn learn(&self, number: u64) {
        self.known.fetch_max(number, Ordering::AcqRel);
    }

    pub(crate) fn progress(&self, area: &Area) -> Progress {
        // Read in this order, so that what completes in between does not seem to be ahead.
        let completed = self.completed(area);
        let submitted = self.submitted.load(Ordering::Acquire);
        Progress { submitted: Submission(submitted), completed: Submission(completed) }
    }

    /// Whether the worker has to be asked to look that far; if so, it counts as asked.
    pub(crate) fn needs_watch(&self, number: u64) -> bool {
        self.watched.fetch_max(number, Ordering::AcqRel) < number
    }
}

/// The streams that are there.
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
