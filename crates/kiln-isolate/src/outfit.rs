//! What a worker was given, and how it gets the rest.
//!
//! The same code prepares a standby in the background and makes a new worker what the last one was: what the client has is
//! held against what the worker has, and the difference is asked for, many steps in one question. A worker that has
//! everything costs a look at the tables.
//!
//! What is unused by the client is taken back from a standby as well. That matters for pages: their memory is free only
//! when the last process that imported them has let go.

mod code;
mod memory;
mod plan;
mod queues;

use std::collections::{BTreeMap, HashMap, HashSet};

use kiln_driver::{Error, GraphId, Protection};

pub(crate) use self::plan::Pace;

use crate::inventory::Inventory;
use crate::link::Link;
use crate::tally::Tally;
use crate::wire::{Ask, Request, WireObject};

const CALL: &str = "take_over";

/// What a worker has, by the numbers both sides know.
#[derive(Debug, Default)]
pub(crate) struct Outfit {
    pages: HashSet<u64>,
    ranges: HashMap<u64, BTreeMap<u64, Placed>>,
    hosts: HashSet<u64>,
    modules: HashSet<u64>,
    /// Kernels, and their modules.
    kernels: HashMap<u64, u64>,
    streams: HashSet<u64>,
    events: HashSet<u64>,
    /// Graphs, and which version of each.
    graphs: HashMap<u64, u64>,
}

/// Pages at a place of a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Placed {
    pages: u64,
    bytes: u64,
    protection: Protection,
}

/// A step that failed.
#[derive(Debug)]
pub(crate) struct Unfit {
    pub(crate) what: String,
    pub(crate) error: Error,
}

impl Unfit {
    fn new(what: impl std::fmt::Display) -> impl FnOnce(Error) -> Self {
        move |error| Self { what: what.to_string(), error }
    }
}

/// What was found on the way.
#[derive(Debug, Default)]
pub(crate) struct Fitted {
    pub(crate) kept_bytes: u64,
    pub(crate) lost_graphs: Vec<GraphId>,
}

/// A worker that gets what the client has.
pub(crate) struct Fitting<'a> {
    pub(crate) link: &'a Link,
    pub(crate) objects: &'a Inventory,
    pub(crate) outfit: &'a mut Outfit,
    pub(crate) pace: Pace<'a>,
    pub(crate) fitted: Fitted,
}

impl Outfit {
    pub(crate) fn tally(&self) -> Tally {
        Tally {
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

impl Fitting<'_> {
    /// Tells the worker that objects of a kind are gone, and that it has them no more.
    fn forget(
        &mut self,
        object: WireObject,
        wanted: &HashSet<u64>,
        of: fn(&mut Outfit) -> &mut HashSet<u64>,
    ) -> Result<(), Unfit> {
        let gone: Vec<u64> = of(self.outfit).difference(wanted).copied().collect();
        for id in gone {
            self.send(&Request::Destroy { object, id }, "an end")?;
            of(self.outfit).remove(&id);
        }
        Ok(())
    }

    fn send(&self, request: &Request<'_>, what: &'static str) -> Result<(), Unfit> {
        self.link.send(CALL, request).map_err(Unfit::new(what))
    }

    /// Waits until everything that was sent is done.
    fn await_all(&self) -> Result<(), Unfit> {
        self.link.ask(CALL, &Ask::Ready, None, |_| Ok(())).map(drop).map_err(Unfit::new("itself"))
    }
}
