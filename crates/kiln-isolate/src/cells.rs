//! Which words of the shared memory belong to which stream or event.
//!
//! A cell is used again only when both sides have let go of it: the client no longer holds it, and the worker wrote into
//! it that it will never write there again. So a late word about an old stream is never taken for one about a new one.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kiln_driver::{Error, Refusal, Result};

use crate::area::{Area, EVENTS_LIMIT, STREAMS_LIMIT};

/// What a worker writes into a cell last. No stream and no ticket counts this far.
pub(crate) const RETIRED: u64 = u64::MAX;

/// How many cells are looked at before a new one is taken.
const LOOKS: usize = 4;

/// What a cell is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CellKind {
    Stream,
    Event,
}

/// The cells of one kind.
#[derive(Debug)]
pub(crate) struct Cells {
    kind: CellKind,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    used: u32,
    free: Vec<u32>,
    /// Let go of here, and not yet there; the oldest first, which the worker lets go of first, mostly.
    retiring: VecDeque<u32>,
}

/// A cell that is held.
#[derive(Debug)]
pub(crate) struct Cell {
    cells: Arc<Cells>,
    index: u32,
}

impl Cells {
    pub(crate) fn new(kind: CellKind) -> Arc<Self> {
        Arc::new(Self { kind, state: Mutex::default() })
    }

    /// A cell nobody has, set to zero.
    pub(crate) fn take(self: &Arc<Self>, call: &'static str, area: &Area) -> Result<Arc<Cell>> {
        let mut state = self.state();
        if state.free.is_empty() {
            for _ in 0..LOOKS {
                match state.retiring.pop_front() {
                    Some(index) if self.word(area, index) == RETIRED => state.free.push(index),
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
        self.set(area, index, 0);
        Ok(Arc::new(Cell { cells: self.clone(), index }))
    }

    /// Another worker is there, with memory of its own: no word from the old one can come any more.
    pub(crate) fn start_over(&self) {
        let mut state = self.state();
        let retiring = std::mem::take(&mut state.retiring);
        state.free.extend(retiring);
    }

    fn word(&self, area: &Area, index: u32) -> u64 {
        match self.kind {
            CellKind::Stream => area.stream(index).load(Ordering::Acquire),
            CellKind::Event => area.event(index).load(Ordering::Acquire),
        }
    }

    fn set(&self, area: &Area, index: u32, value: u64) {
        match self.kind {
            CellKind::Stream => area.stream(index).store(value, Ordering::Release),
            CellKind::Event => area.event(index).store(value, Ordering::Release),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cell {
    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    /// What the worker wrote last; nothing once it has let go.
    pub(crate) fn read(&self, area: &Area) -> Option<u64> {
        Some(self.cells.word(area, self.index)).filter(|word| *word != RETIRED)
    }

    /// Sets it, before a worker knows of it.
    pub(crate) fn set(&self, area: &Area, value: u64) {
        self.cells.set(area, self.index, value);
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        self.cells.state().retiring.push_back(self.index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::area::AREA_BYTES;
    use crate::shared_file::SharedFile;

    #[test]
    fn a_cell_is_used_again_when_both_sides_have_let_go() {
        let area = Area::map(&SharedFile::create(AREA_BYTES).unwrap()).unwrap();
        let cells = Cells::new(CellKind::Stream);
        let first = cells.take("create_stream", &area).unwrap();
        area.stream(first.index()).store(5, Ordering::Release);
        assert_eq!(first.read(&area), Some(5));
        let old = first.index();
        drop(first);
        let second = cells.take("create_stream", &area).unwrap();
        assert_ne!(second.index(), old);
        area.stream(old).store(RETIRED, Ordering::Release);
        let third = cells.take("create_stream", &area).unwrap();
        assert_eq!((third.index(), third.read(&area)), (old, Some(0)));
        drop(second);
        cells.start_over();
        assert_eq!(cells.take("create_stream", &area).unwrap().index(), 1);
    }
}
