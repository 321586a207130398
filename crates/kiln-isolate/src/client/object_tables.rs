//! All objects of the client, by handle.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use kiln_driver::{DeviceKey, Slots, kind};

use super::objects::{Block, Event, Graph, Host, Kernel, Module, Pages, Range, Stream};
use std::sync::Arc;

/// The tables of an isolated device.
///
/// A call that makes or changes an object holds a shared lock from before it picks the worker until the table is updated, and a takeover
/// takes the lock exclusively. So no object that was made in the old worker enters the tables after the new worker was given what they
/// hold.
pub(crate) struct ObjectTables {
    pub(crate) graphs: Slots<kind::Graph, Graph>,
    pub(crate) functions: Slots<kind::Function, Arc<Kernel>>,
    pub(crate) modules: Slots<kind::Module, Module>,
    pub(crate) events: Slots<kind::Event, Event>,
    pub(crate) streams: Slots<kind::Stream, Stream>,
    pub(crate) memory: Slots<kind::Memory, Block>,
    pub(crate) reservations: Slots<kind::Reservation, Arc<Range>>,
    pub(crate) pages: Slots<kind::Pages, Arc<Pages>>,
    pub(crate) hosts: Slots<kind::Host, Host>,
    changes: RwLock<()>,
}

impl ObjectTables {
    pub(crate) fn new(key: DeviceKey) -> Self {
        Self {
            graphs: Slots::new(key),
            functions: Slots::new(key),
            modules: Slots::new(key),
            events: Slots::new(key),
            streams: Slots::new(key),
            memory: Slots::new(key),
            reservations: Slots::new(key),
            pages: Slots::new(key),
            hosts: Slots::new(key),
            changes: RwLock::new(()),
        }
    }

    /// Held by a call that makes or changes an object; shared.
    pub(crate) fn change(&self) -> RwLockReadGuard<'_, ()> {
        self.changes.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no call changes an object, and holds such calls back; exclusive.
    pub(crate) fn exclude_changes(&self) -> RwLockWriteGuard<'_, ()> {
        self.changes.write().unwrap_or_else(PoisonError::into_inner)
    }
}
