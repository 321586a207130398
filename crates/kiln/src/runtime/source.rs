//! Where blocks come from.
//!
//! A source gives memory out with the stamp it may be used from, and takes it back with the stamps of its last uses. Taking back
//! never waits: memory whose last use is not known to be done is kept aside until it is.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kiln_driver::{Base, DeviceAddress, DevicePlace, Error, MemoryId, MemoryRequest};

use crate::order::{Lane, Stamp, Stamps, Tracker};

/// A piece of device memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    /// Where commands find it.
    pub(crate) place: DevicePlace,
    /// Where kernels find it.
    pub(crate) address: DeviceAddress,
    /// Its length.
    pub(crate) bytes: u64,
}

/// Something that gives memory out and takes it back.
pub(crate) trait BlockSource: Send + Sync {
    /// At least one byte, and the stamp from which on it may be used.
    fn allocate(&self, bytes: u64, lane: &Lane) -> Result<(Piece, Stamp), Error>;

    /// Takes memory back, to be given out again after its last uses.
    fn release(&self, piece: Piece, uses: Stamps);

    /// Frees what is known to be done; returns how many bytes that were.
    fn reap(&self) -> Result<u64, Error>;

    /// Frees everything, also what handles still hold; for the end of a runtime, when nothing runs any more.
    fn release_all(&self);
}

/// Memory straight from the driver, freed when its last use is done.
pub(crate) struct DirectSource {
    tracker: Arc<Tracker>,
    pending: Mutex<Vec<(Piece, Stamps)>>,
    /// What was given out and not freed yet.
    live: Mutex<HashSet<MemoryId>>,
}

impl DirectSource {
    pub(crate) fn new(tracker: Arc<Tracker>) -> Self {
        Self { tracker, pending: Mutex::default(), live: Mutex::default() }
    }

    fn take_pending(&self) -> Vec<(Piece, Stamps)> {
        std::mem::take(&mut *self.pending.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn live(&self) -> MutexGuard<'_, HashSet<MemoryId>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn free(&self, piece: Piece) -> Result<u64, Error> {
        if let Base::Memory(id) = piece.place.base {
            self.tracker.driver().free(id, None)?;
            self.live().remove(&id);
        }
        Ok(piece.bytes)
    }
}

impl BlockSource for DirectSource {
    fn allocate(&self, bytes: u64, lane: &Lane) -> Result<(Piece, Stamp), Error> {
        let ask = || self.tracker.driver().allocate(MemoryRequest::Direct { bytes });
        let memory = match ask() {
            Err(error) if error.is_oom() && self.reap()? > 0 => ask()?,
            other => other?,
        };
        self.live().insert(memory.id);
        let piece = Piece { place: memory.id.into(), address: memory.address, bytes: memory.bytes };
        Ok((piece, Stamp { stream: lane.key, number: 0 }))
    }

    fn release(&self, piece: Piece, uses: Stamps) {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).push((piece, uses));
        // What is done already need not wait for somebody to ask; a fault here is seen by the next call that matters.
        let _ = self.reap();
    }

    fn reap(&self) -> Result<u64, Error> {
        let mut freed = 0;
        let mut kept = Vec::new();
        for (piece, uses) in self.take_pending() {
            match self.tracker.all_done(&uses) {
                Ok(true) => freed += self.free(piece)?,
                Ok(false) => kept.push((piece, uses)),
                Err(error) => {
                    kept.push((piece, uses));
                    self.pending.lock().unwrap_or_else(PoisonError::into_inner).append(&mut kept);
                    return Err(error);
                }
            }
        }
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).append(&mut kept);
        Ok(freed)
    }

    fn release_all(&self) {
        drop(self.take_pending());
        for id in std::mem::take(&mut *self.live()) {
            // A lost device has nothing left to free.
            let _ = self.tracker.driver().free(id, None);
        }
    }
}
