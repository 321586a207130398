//! Maps the client's ids of objects to the driver's handles.
//!
//! Streams and events are reference-counted, because the [completion poller](super::completion_poller) may be querying one that the client destroyed. The driver destroys it after
//! the last query, and only then is its cell of the shared memory released.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kiln_driver::{
    Error, EventId, FunctionId, GraphId, HostBlock, MemoryId, ModuleId, Object, PagesId, Refusal,
    ReservationId, Result, StreamId,
};

use super::SharedDriver;
use super::fault_reporter::FaultReporter;
use super::submission_numbers::SubmissionNumbers;
use crate::protocol::progress_cells::RETIRED;
use crate::protocol::segment::Segment;
use crate::protocol::wire::WireObject;

/// All objects of the client.
#[derive(Default)]
pub(super) struct ObjectTable {
    pub(super) streams: HashMap<u64, Arc<StreamEntry>>,
    pub(super) events: HashMap<u64, Arc<EventEntry>>,
    pub(super) memory: HashMap<u64, MemoryId>,
    pub(super) reservations: HashMap<u64, ReservationId>,
    pub(super) pages: HashMap<u64, PagesId>,
    pub(super) hosts: HashMap<u64, HostBlock>,
    pub(super) modules: HashMap<u64, ModuleEntry>,
    pub(super) functions: HashMap<u64, FunctionId>,
    pub(super) graphs: HashMap<u64, GraphId>,
}

/// A module, and the ids of what was looked up in it.
pub(super) struct ModuleEntry {
    pub(super) id: ModuleId,
    pub(super) functions: Vec<u64>,
    pub(super) variables: Vec<u64>,
}

/// A stream of the client.
pub(super) struct StreamEntry {
    pub(super) id: StreamId,
    pub(super) wire: u64,
    pub(super) cell: u32,
    pub(super) segment: Segment,
    pub(super) driver: SharedDriver,
    pub(super) reporter: Arc<FaultReporter>,
    numbers: Mutex<SubmissionNumbers>,
}

impl StreamEntry {
    pub(super) fn new(
        id: StreamId,
        (wire, cell, start): (u64, u32, u64),
        segment: Segment,
        driver: SharedDriver,
        reporter: Arc<FaultReporter>,
    ) -> Arc<Self> {
        let numbers = Mutex::new(SubmissionNumbers::new(start));
        let entry = Arc::new(Self { id, wire, cell, segment, driver, reporter, numbers });
        entry.reporter.add(&entry);
        entry
    }

    pub(super) fn numbers(&self) -> MutexGuard<'_, SubmissionNumbers> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StreamEntry {
    fn drop(&mut self) {
        self.reporter.remove(self.id);
        let _ = self.driver.destroy(self.id.into());
        self.segment.stream(self.cell).store(RETIRED, Ordering::Release);
    }
}

/// An event of the client.
pub(super) struct EventEntry {
    pub(super) id: EventId,
    pub(super) cell: u32,
    pub(super) segment: Segment,
    pub(super) driver: SharedDriver,
    /// The ticket of its last signal. Locked while it is signalled and while it is queried, so that the result belongs to that signal.
    pub(super) last: Mutex<u64>,
}

impl EventEntry {
    pub(super) fn last(&self) -> MutexGuard<'_, u64> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for EventEntry {
    fn drop(&mut self) {
        let _ = self.driver.destroy(self.id.into());
        self.segment.event(self.cell).store(RETIRED, Ordering::Release);
    }
}

/// The object with an id.
pub(super) fn find<'a, T>(table: &'a HashMap<u64, T>, id: u64, call: &'static str) -> Result<&'a T> {
    table.get(&id).ok_or_else(|| unknown(call, id))
}

/// The error for an unknown id.
pub(super) fn unknown(call: &'static str, id: u64) -> Error {
    Error::refused(call, Refusal::Stale { handle: format!("object {id} of the client") })
}

impl ObjectTable {
    /// Destroys an object.
    pub(super) fn destroy(&mut self, driver: &SharedDriver, object: WireObject, id: u64) -> Result<()> {
        const CALL: &str = "destroy";
        let gone = |object: Option<Object>| object.ok_or_else(|| unknown(CALL, id));
        match object {
            WireObject::Stream => self.streams.remove(&id).map(drop).ok_or_else(|| unknown(CALL, id)),
            WireObject::Event => self.events.remove(&id).map(drop).ok_or_else(|| unknown(CALL, id)),
            WireObject::Module => {
                let module = self.modules.remove(&id).ok_or_else(|| unknown(CALL, id))?;
                self.functions.retain(|id, _| !module.functions.contains(id));
                self.memory.retain(|id, _| !module.variables.contains(id));
                driver.destroy(module.id.into())
            }
            WireObject::Pages => driver.destroy(gone(self.pages.remove(&id).map(Object::from))?),
            WireObject::Host => driver.destroy(gone(self.hosts.remove(&id).map(|host| host.id().into()))?),
            WireObject::Graph => driver.destroy(gone(self.graphs.remove(&id).map(Object::from))?),
        }
    }
}
