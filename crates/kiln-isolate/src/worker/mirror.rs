//! The worker's side of every object: the client's number on one side, the driver's handle on the other.
//!
//! What the watcher may still look at is counted: a stream or an event that the client destroyed ends in the driver when
//! the last look at it is over, and only then is its cell of the shared memory given back.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kiln_driver::{
    Error, EventId, FunctionId, GraphId, HostBlock, MemoryId, ModuleId, Object, PagesId, Refusal,
    ReservationId, Result, StreamId,
};

use super::SharedDriver;
use super::numbering::Numbering;
use super::reporter::Reporter;
use crate::area::Area;
use crate::cells::RETIRED;
use crate::wire::WireObject;

/// Everything the client made.
#[derive(Default)]
pub(super) struct Mirror {
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

/// A module, and what was looked up in it.
pub(super) struct ModuleEntry {
    pub(super) id: ModuleId,
    pub(super) functions: Vec<u64>,
    pub(super) variables: Vec<u64>,
}

/// A stream of the client's.
pub(super) struct StreamEntry {
    pub(super) id: StreamId,
    pub(super) wire: u64,
    pub(super) cell: u32,
    pub(super) area: Area,
    pub(super) driver: SharedDriver,
    pub(super) reporter: Arc<Reporter>,
    numbering: Mutex<Numbering>,
}

impl StreamEntry {
    pub(super) fn new(
        id: StreamId,
        (wire, cell, start): (u64, u32, u64),
        area: Area,
        driver: SharedDriver,
        reporter: Arc<Reporter>,
    ) -> Arc<Self> {
        let numbering = Mutex::new(Numbering::new(start));
        let entry = Arc::new(Self { id, wire, cell, area, driver, reporter, numbering });
        entry.reporter.introduce(&entry);
        entry
    }

    pub(super) fn numbering(&self) -> MutexGuard<'_, Numbering> {
        self.numbering.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StreamEntry {
    fn drop(&mut self) {
        self.reporter.forget(self.id);
        let _ = self.driver.destroy(self.id.into());
        self.area.stream(self.cell).store(RETIRED, Ordering::Release);
    }
}

/// An event of the client's.
pub(super) struct EventEntry {
    pub(super) id: EventId,
    pub(super) cell: u32,
    pub(super) area: Area,
    pub(super) driver: SharedDriver,
    /// The ticket of its last signal. Held while it is signalled and while it is looked at, so that an answer is known to
    /// belong to that signal.
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
        self.area.event(self.cell).store(RETIRED, Ordering::Release);
    }
}

/// The object behind a number.
pub(super) fn find<'a, T>(table: &'a HashMap<u64, T>, id: u64, call: &'static str) -> Result<&'a T> {
    table.get(&id).ok_or_else(|| unknown(call, id))
}

/// What a number nobody knows is answered with.
pub(super) fn unknown(call: &'static str, id: u64) -> Error {
    Error::refused(call, Refusal::Stale { handle: format!("object {id} of the client") })
}

impl Mirror {
    /// Takes an object back.
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
