//! Words of the shared memory in which the worker publishes the progress of streams and events, one for each.
//!
//! A cell is used again only when both sides have released it: the client no longer holds it, and the worker has written the value that
//! says it will not write there again. So late progress of an old stream is never taken for progress of a new one.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kiln_driver::{Error, Refusal, Result};

use super::segment::{EVENTS_LIMIT, STREAMS_LIMIT, Segment};

/// The last value a worker writes into a cell. No submission and no ticket has this number.
pub(crate) const RETIRED: u64 = u64::MAX;

/// How many retiring cells are checked before a new one is used.
const LOOKS: usize = 4;

/// What the cells are for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CellKind {
    Stream,
    Event,
}

/// Allocates the cells of one kind.
#[derive(Debug)]
pub(crate) struct ProgressCells {
    kind: CellKind,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    used: u32,
    free: Vec<u32>,
    /// Released by the client and not yet by the worker; the oldest first, which the worker usually releases first.
    retiring: VecDeque<u32>,
}

/// A cell that a stream or event holds.
#[derive(Debug)]
pub(crate) struct ProgressCell {
    cells: Arc<ProgressCells>,
    index: u32,
}

impl ProgressCells {
    pub(crate) fn new(kind: CellKind) -> Arc<Self> {
        Arc::new(Self { kind, state: Mutex::default() })
    }

    /// A free cell, set to zero.
    pub(crate) fn take(self: &Arc<Self>, call: &'static str, segment: &Segment) -> Result<Arc<ProgressCell>> {
        let mut state = self.state();
        if state.free.is_empty() {
            for _ in 0..LOOKS {
                match state.retiring.pop_front() {
                    Some(index) if self.word(segment, index) == RETIRED => state.free.push(index),
                    Some(index) => state.retiring.push_back(index),
                    None => break,
                }
            }
        }
        let index = match state.free.pop() {
            Some(index) => index,
            None => {
                let (what, limit) = match self.kind {
                    CellKind::Stream => ("streams of an isolated device", STREAMS_LIMIT),
                    CellKind::Event => ("events of an isolated device", EVENTS_LIMIT),
                };
                if state.used >= limit {
                    return Err(Error::refused(call, Refusal::Limit { what, limit: u64::from(limit) }));
                }
                state.used += 1;
                state.used - 1
            }
        };
        drop(state);
        self.set(segment, index, 0);
        Ok(Arc::new(ProgressCell { cells: self.clone(), index }))
    }

    /// A new worker with a new segment is in use: the old one can write to no cell any more.
    pub(crate) fn start_over(&self) {
        let mut state = self.state();
        let retiring = std::mem::take(&mut state.retiring);
        state.free.extend(retiring);
    }

    fn word(&self, segment: &Segment, index: u32) -> u64 {
        match self.kind {
            CellKind::Stream => segment.stream(index).load(Ordering::Acquire),
            CellKind::Event => segment.event(index).load(Ordering::Acquire),
        }
    }

    fn set(&self, segment: &Segment, index: u32, value: u64) {
        match self.kind {
            CellKind::Stream => segment.stream(index).store(value, Ordering::Release),
            CellKind::Event => segment.event(index).store(value, Ordering::Release),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProgressCell {
    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    /// What the worker wrote last; `None` once it has released the cell.
    pub(crate) fn read(&self, segment: &Segment) -> Option<u64> {
        Some(self.cells.word(segment, self.index)).filter(|word| *word != RETIRED)
    }

    /// Sets it before the worker knows of it.
    pub(crate) fn set(&self, segment: &Segment, value: u64) {
        self.cells.set(segment, self.index, value);
    }
}

impl Drop for ProgressCell {
    fn drop(&mut self) {
        self.cells.state().retiring.push_back(self.index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::memory_file::MemoryFile;
    use crate::protocol::segment::SEGMENT_BYTES;

    #[test]
    fn a_cell_is_used_again_when_both_sides_have_released_it() {
        let segment = Segment::map(&MemoryFile::create(SEGMENT_BYTES).unwrap()).unwrap();
        let cells = ProgressCells::new(CellKind::Stream);
        let first = cells.take("create_stream", &segment).unwrap();
        segment.stream(first.index()).store(5, Ordering::Release);
        assert_eq!(first.read(&segment), Some(5));
        let old = first.index();
        drop(first);
        let second = cells.take("create_stream", &segment).unwrap();
        assert_ne!(second.index(), old);
        segment.stream(old).store(RETIRED, Ordering::Release);
        let third = cells.take("create_stream", &segment).unwrap();
        assert_eq!((third.index(), third.read(&segment)), (old, Some(0)));
        drop(second);
        cells.start_over();
        assert_eq!(cells.take("create_stream", &segment).unwrap().index(), 1);
    }
}
