//! Streams and events that are imported by their native handle.
//!
//! On a GPU another library of the process names a stream by the number the driver gave it. Here the number leads back to the
//! handle it was asked for, so that a program which takes another library's streams and events in can be run and checked.
//! Each holder of the number has a separate name; giving that name back leaves the stream or the event alone. An event of one device can be
//! imported by another device of the same machine, as CUDA allows within a process: its streams wait for it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kiln_driver::{Error, EventId, ForeignHandle, Object, Result, StreamId};

use crate::device::objects::Objects;
use crate::schedule::machine_core::Core;

/// Numbers begin here, so that none is zero or looks like a small integer by mistake.
const FIRST: u64 = 0x5_1000;
/// And are as far apart as pointers to objects would be.
const STEP: u64 = 0x40;

/// Numbers of two devices are so far apart.
const DEVICE_STEP: u64 = 1 << 40;

/// The numbers a device has told.
#[derive(Debug)]
pub(crate) struct Natives {
    first: u64,
    told: Mutex<Told>,
}

#[derive(Debug, Default)]
struct Told {
    count: u64,
    owners: BTreeMap<u64, Object>,
}

impl Natives {
    pub(crate) fn new(ordinal: u32) -> Self {
        Self { first: FIRST + u64::from(ordinal) * DEVICE_STEP, told: Mutex::default() }
    }

    /// The number of an object, the same whenever it is asked.
    fn number(&self, owner: Object) -> u64 {
        let mut told = self.told();
        if let Some((number, _)) = told.owners.iter().find(|(_, known)| **known == owner) {
            return *number;
        }
        let number = self.first + told.count * STEP;
        told.count += 1;
        told.owners.insert(number, owner);
        number
    }

    /// What a number was told for.
    fn owner(&self, handle: ForeignHandle) -> Option<Object> {
        self.told().owners.get(&handle.raw()).copied()
    }

    /// The object is gone, and its number means nothing any more.
    pub(crate) fn forget(&self, owner: Object) {
        self.told().owners.retain(|_, known| *known != owner);
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Core {
    pub(crate) fn native(&self, objects: &Objects, object: Object) -> Result<u64> {
        const CALL: &str = "native";
        let state = self.enter(objects.info.ordinal, CALL)?;
        let owner = match object {
            Object::Stream(id) => {
                let lane = *objects.streams.find(CALL, id)?;
                state.streams.get(&lane).map_or(object, |stream| stream.id.into())
            }
            Object::Event(id) => objects.events.find(CALL, id)?.id.into(),
            _ => {
                let what = "a native handle of this kind of object";
                return Err(Error::unsupported(CALL, what, "only streams and events have one here"));
            }
        };
        Ok(objects.natives.number(owner))
    }

    /// A second name for a stream.
    pub(crate) fn name_stream(&self, objects: &Objects, handle: ForeignHandle) -> Result<StreamId> {
        const CALL: &str = "create_stream";
        let mut state = self.enter(objects.info.ordinal, CALL)?;
        let Some(Object::Stream(owner)) = objects.natives.owner(handle) else {
            return Err(unknown(CALL, "stream", handle));
        };
        let lane = *objects.streams.find(CALL, owner)?;
        let (id, _) = objects.streams.insert(|_| lane)?;
        if let Some(stream) = state.streams.get_mut(&lane) {
            stream.names.push(id);
        }
        Ok(id)
    }

    /// A second name for an event.
    pub(crate) fn name_event(&self, objects: &Objects, handle: ForeignHandle) -> Result<EventId> {
        const CALL: &str = "create_event";
        let _state = self.enter(objects.info.ordinal, CALL)?;
        let owner = self.devices.iter().find_map(|device| Some((device, device.natives.owner(handle)?)));
        let Some((device, Object::Event(owner))) = owner else {
            return Err(unknown(CALL, "event", handle));
        };
        let event = device.events.find(CALL, owner)?;
        objects.events.insert_shared(event)
    }
}

fn unknown(call: &'static str, kind: &str, handle: ForeignHandle) -> Error {
    let what = format!("{:#x} is no {kind} here", handle.raw());
    Error::invalid(call, what, "give it a number that `native` told for one that is alive")
}
