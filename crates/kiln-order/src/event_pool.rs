//! A pool of events without timing, one per device.
//!
//! An event is leased, not owned: while a lease is held it is not signalled again for something else, so a stream
//! that is about to wait for it waits for the right point. Cells never move and leases count in place, so that taking,
//! sharing and giving back cost no allocation once the pool has grown to what the program needs.

use std::sync::{Arc, OnceLock, PoisonError};

use kiln_driver::{Driver, Error, EventId, EventRequest, Refusal};

use crate::sync_shim::{AtomicU32, Mutex, Ordering};

/// Events one runtime may have at once.
pub const MAX_EVENTS: usize = 4096;

/// The events of one device.
pub(crate) struct EventPool {
    cells: Box<[Cell]>,
    pub(crate) free: Mutex<Free>,
}

struct Cell {
    event: OnceLock<EventId>,
    leases: AtomicU32,
}

pub(crate) struct Free {
    pub(crate) returned: Vec<u16>,
    pub(crate) used: usize,
}

impl EventPool {
    /// A pool that makes its events when they are first needed.
    pub(crate) fn new() -> Arc<Self> {
        let cells =
            (0..MAX_EVENTS).map(|_| Cell { event: OnceLock::new(), leases: AtomicU32::new(0) }).collect();
        Arc::new(Self { cells, free: Mutex::new(Free { returned: Vec::with_capacity(MAX_EVENTS), used: 0 }) })
    }

    /// An event that is not leased.
    ///
    /// # Errors
    /// What the driver says when it makes one; refused past [`MAX_EVENTS`].
    pub(crate) fn take(self: &Arc<Self>, driver: &dyn Driver) -> Result<EventLease, Error> {
        let index = self.take_index()?;
        let cell = &self.cells[usize::from(index)];
        let event = match cell.event.get() {
            Some(event) => *event,
            None => match driver.create_event(EventRequest::Plain) {
                Ok(event) => *cell.event.get_or_init(|| event),
                Err(error) => {
                    self.give_back(index);
                    return Err(error);
                }
            },
        };
        cell.leases.store(1, Ordering::Relaxed);
        Ok(EventLease { pool: self.clone(), index, event })
    }

    /// Events made so far, and how many of them are leased.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        (free.used, free.used - free.returned.len())
    }

    /// Destroys every event; for the end of a runtime, when no lease is used any more.
    pub(crate) fn destroy_all(&self, driver: &dyn Driver) {
        for event in self.cells.iter().filter_map(|cell| cell.event.get()) {
            // A lost device has nothing left to destroy, and there is no caller to tell.
            let _ = driver.destroy((*event).into());
        }
    }

    fn take_index(&self) -> Result<u16, Error> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = free.returned.pop() {
            return Ok(index);
        }
        if free.used == MAX_EVENTS {
            let refusal = Refusal::Limit { what: "events in use at once", limit: MAX_EVENTS as u64 };
            return Err(Error::refused("create_event", refusal));
        }
        free.used += 1;
        Ok((free.used - 1) as u16)
    }

    fn give_back(&self, index: u16) {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).returned.push(index);
    }
}

/// The right to wait for an event as it was signalled.
pub struct EventLease {
    pool: Arc<EventPool>,
    index: u16,
    event: EventId,
}

impl EventLease {
    /// Whether this is the only lease of the event.
    pub fn is_sole(&self) -> bool {
        self.pool.cells[usize::from(self.index)].leases.load(Ordering::Acquire) == 1
    }

    /// The event.
    pub fn event(&self) -> EventId {
        self.event
    }
}

impl Clone for EventLease {
    fn clone(&self) -> Self {
        self.pool.cells[usize::from(self.index)].leases.fetch_add(1, Ordering::Relaxed);
        Self { pool: self.pool.clone(), index: self.index, event: self.event }
    }
}

impl Drop for EventLease {
    fn drop(&mut self) {
        let cell = &self.pool.cells[usize::from(self.index)];
        if cell.leases.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.pool.give_back(self.index);
        }
    }
}
