//! Everything the client has made, found by handle.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use kiln_driver::{DeviceKey, Slots, kind};

use crate::objects::{Block, Event, Graph, Host, Kernel, Module, Pages, Range, Stream};
use std::sync::Arc;

/// The tables of an isolated device.
///
/// Who makes or changes something holds its turn from before it looks for the worker until the table has it, and a takeover
/// waits for all of them. So nothing is made in a worker that is gone and found in the tables after the next
/// one was given everything in them.
pub(crate) struct Inventory {
    pub(crate) graphs: Slots<kind::Graph, Graph>,
    pub(crate) functions: Slots<kind::Function, Arc<Kernel>>,
    pub(crate) modules: Slots<kind::Module, Module>,
    pub(crate) events: Slots<kind::Event, Event>,
    pub(crate) streams: Slots<kind::Stream, Stream>,
    pub(crate) memory: Slots<kind::Memory, Block>,
    pub(crate) reservations: Slots<kind::Reservation, Arc<Range>>,
    pub(crate) pages: Slots<kind::Pages, Arc<Pages>>,
    pub(crate) hosts: Slots<kind::Host, Host>,
    turn: RwLock<()>,
}

impl Inventory {
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
            turn: RwLock::new(()),
        }
    }

    /// A turn for somebody who changes a table; many may have one at a time.
    pub(crate) fn change(&self) -> RwLockReadGuard<'_, ()> {
        self.turn.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nobody has a turn, and lets nobody have one.
    pub(crate) fn hold_still(&self) -> RwLockWriteGuard<'_, ()> {
        self.turn.write().unwrap_or_else(PoisonError::into_inner)
    }
}
