//! Objects by handle, shared with the work that still needs them.

use std::fmt;
use std::sync::{Arc, OnceLock};

use kiln_driver::{DeviceKey, Handle, Kind, Result, Slots};

/// Objects of one kind that a device has given out.
pub(crate) struct Table<K, T> {
    /// A slot is empty only between taking the handle and making the object, which needs it for its name.
    slots: Slots<K, OnceLock<Arc<T>>>,
}

impl<K: Kind, T> Table<K, T> {
    pub(crate) fn new(device: DeviceKey) -> Self {
        Self { slots: Slots::new(device) }
    }

    pub(crate) fn insert(&self, make: impl FnOnce(Handle<K>) -> T) -> Result<(Handle<K>, Arc<T>)> {
        let handle = self.slots.insert(OnceLock::new())?;
        let object = Arc::new(make(handle));
        // No other thread knows the handle yet, so the slot is empty and the object goes in.
        let _ = self.slots.pin(handle)?.set(object.clone());
        Ok((handle, object))
    }

    /// Another handle of an object that has one.
    pub(crate) fn insert_shared(&self, object: Arc<T>) -> Result<Handle<K>> {
        self.slots.insert(OnceLock::from(object))
    }

    pub(crate) fn find(&self, call: &'static str, handle: Handle<K>) -> Result<Arc<T>> {
        let pinned = self.slots.pin(handle).map_err(|error| error.seen_by(call))?;
        pinned.get().cloned().ok_or_else(|| stale(call, handle))
    }

    pub(crate) fn remove(&self, call: &'static str, handle: Handle<K>) -> Result<Arc<T>> {
        let object = self.find(call, handle)?;
        self.slots.remove(handle).map_err(|error| error.seen_by(call))?;
        Ok(object)
    }

    pub(crate) fn handles(&self) -> Vec<Handle<K>> {
        self.slots.handles()
    }
}

impl<K: Kind, T> fmt::Debug for Table<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.slots.fmt(f)
    }
}

fn stale<K: Kind>(call: &'static str, handle: Handle<K>) -> kiln_driver::Error {
    kiln_driver::Error::refused(call, kiln_driver::Refusal::Stale { handle: handle.to_string() })
}
