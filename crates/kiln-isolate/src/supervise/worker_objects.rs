//! Which objects a worker has, and how it gets those it lacks.
//!
//! The same code prepares a standby in the background and rebuilds a new worker in a takeover: it compares the client's objects with
//! the worker's and requests the difference, many steps in one question. For a worker that has everything the comparison is all it costs.
//!
//! Objects that the client destroyed are destroyed in a standby as well. That matters for pages: their memory is free only when every
//! process that imported them has released them.

mod code;
mod memory;
mod step_batch;
mod streams;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use kiln_driver::{Error, GraphId, Protection};

pub(crate) use self::step_batch::Pace;

use super::object_counts::ObjectCounts;
use crate::client::connection::Link;
use crate::client::object_tables::ObjectTables;
use crate::protocol::wire::{Ask, Request, WireObject};

const CALL: &str = "take_over";

/// A worker process, the link to it, and the objects it has.
#[derive(Clone)]
pub(crate) struct WorkerHandle {
    pub(crate) process: u32,
    pub(crate) link: Arc<Link>,
    pub(crate) state: Arc<Mutex<WorkerState>>,
}

/// The objects a worker has, by the ids both sides use.
#[derive(Debug, Default)]
pub(crate) struct WorkerState {
    pages: HashSet<u64>,
    ranges: HashMap<u64, BTreeMap<u64, MappedPages>>,
    hosts: HashSet<u64>,
    modules: HashSet<u64>,
    /// Kernels, and their modules.
    kernels: HashMap<u64, u64>,
    streams: HashSet<u64>,
    events: HashSet<u64>,
    /// Graphs, and which version of each.
    graphs: HashMap<u64, u64>,
}

/// Pages that are mapped somewhere in a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct MappedPages {
    pages: u64,
    bytes: u64,
    protection: Protection,
}

/// A step that failed.
#[derive(Debug)]
pub(crate) struct SyncError {
    /// What could not be made again.
    pub(crate) what: String,
    pub(crate) error: Error,
}

impl SyncError {
    fn new(what: impl std::fmt::Display) -> impl FnOnce(Error) -> Self {
        move |error| Self { what: what.to_string(), error }
    }
}

/// What a synchronisation found.
#[derive(Debug, Default)]
pub(crate) struct SyncOutcome {
    pub(crate) kept_bytes: u64,
    pub(crate) lost_graphs: Vec<GraphId>,
}

/// Gives a worker the client's objects.
pub(crate) struct StateSync<'a> {
    pub(crate) link: &'a Link,
    pub(crate) objects: &'a ObjectTables,
    pub(crate) state: &'a mut WorkerState,
    pub(crate) pace: Pace<'a>,
    pub(crate) outcome: SyncOutcome,
}

impl WorkerHandle {
    pub(crate) fn new(process: u32, link: Arc<Link>) -> Self {
        Self { process, link, state: Arc::default() }
    }

    /// How many objects of each kind the worker has.
    pub(crate) fn counts(&self) -> ObjectCounts {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).counts()
    }
}

impl WorkerState {
    pub(crate) fn counts(&self) -> ObjectCounts {
        ObjectCounts {
            pages: self.pages.len(),
            ranges: self.ranges.len(),
            mappings: self.ranges.values().map(BTreeMap::len).sum(),
            hosts: self.hosts.len(),
            modules: self.modules.len(),
            kernels: self.kernels.len(),
            streams: self.streams.len(),
            events: self.events.len(),
            graphs: self.graphs.len(),
        }
    }
}

impl StateSync<'_> {
    /// Destroys the worker's objects of one kind that are not wanted any more.
    fn destroy_unwanted(
        &mut self,
        object: WireObject,
        wanted: &HashSet<u64>,
        of: fn(&mut WorkerState) -> &mut HashSet<u64>,
    ) -> Result<(), SyncError> {
        let unwanted: Vec<u64> = of(self.state).difference(wanted).copied().collect();
        for id in unwanted {
            self.send(&Request::Destroy { object, id }, "the end of an object")?;
            of(self.state).remove(&id);
        }
        Ok(())
    }

    fn send(&self, request: &Request<'_>, what: &'static str) -> Result<(), SyncError> {
        self.link.send(CALL, request).map_err(SyncError::new(what))
    }

    /// Waits until the worker has handled everything that was sent.
    fn wait_for_worker(&self) -> Result<(), SyncError> {
        self.link.ask(CALL, &Ask::Ready, None, |_| Ok(())).map(drop).map_err(SyncError::new("its objects"))
    }
}
