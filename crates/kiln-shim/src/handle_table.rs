//! The handles that the API gives out.
//!
//! A handle is a number made of the kind of object, the generation of its slot and the slot. It points nowhere, so a wild one cannot be followed,
//! and one of a destroyed object or of another kind is not found.

use std::sync::Arc;

use kiln_sync::{Bias, BiasedLock};

/// A handle as C has it: an opaque pointer.
pub(crate) type RawHandle = usize;

/// Generations of a slot; a slot that had so many is not used again.
const GENERATIONS: u32 = 1 << 24;
/// How often other threads may use a table before it belongs to all alike: nearly every call looks up a handle, and most programs call from one thread.
const VISITS: u32 = 256;
/// Slots of a table.
const SLOTS: usize = 1 << 28;

/// What a handle names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum HandleKind {
    Context = 0x41,
    Stream,
    Event,
    Module,
    Function,
    Library,
    Kernel,
    Link,
    Pool,
    Graph,
    GraphNode,
    GraphExec,
    PhysicalMemory,
    UserObject,
    Array,
    MipmappedArray,
    ExternalMemory,
}

/// All objects of a kind.
pub(crate) struct HandleTable<T> {
    kind: HandleKind,
    slots: BiasedLock<Slots<T>>,
}

struct Slots<T> {
    slots: Vec<Slot<T>>,
    free: Vec<usize>,
}

struct Slot<T> {
    generation: u32,
    object: Option<Arc<T>>,
}

impl<T> HandleTable<T> {
    pub(crate) fn new(kind: HandleKind) -> Self {
        let slots = Slots { slots: Vec::new(), free: Vec::new() };
        Self { kind, slots: BiasedLock::with_bias(slots, Bias::Returns(VISITS)) }
    }

    /// Gives an object a handle; nothing if the table is full.
    pub(crate) fn insert(&self, object: Arc<T>) -> Option<RawHandle> {
        let mut slots = self.slots.lock();
        let index = match slots.free.pop() {
            Some(index) => index,
            None if slots.slots.len() < SLOTS => {
                slots.slots.push(Slot { generation: 1, object: None });
                slots.slots.len() - 1
            }
            None => return None,
        };
        let slot = slots.slots.get_mut(index)?;
        slot.object = Some(object);
        Some(self.encode(index, slot.generation))
    }

    /// The object of a handle.
    #[inline]
    pub(crate) fn get(&self, handle: RawHandle) -> Option<Arc<T>> {
        let (index, generation) = self.decode(handle)?;
        let slots = self.slots.lock();
        slots.slots.get(index).filter(|slot| slot.generation == generation)?.object.clone()
    }

    /// Ends a handle.
    pub(crate) fn remove(&self, handle: RawHandle) -> Option<Arc<T>> {
        let (index, generation) = self.decode(handle)?;
        let mut slots = self.slots.lock();
        let slot = slots.slots.get_mut(index).filter(|slot| slot.generation == generation)?;
        let object = slot.object.take()?;
        slots.retire(index);
        Some(object)
    }

    /// Ends the handles of all objects that are meant, and returns the objects.
    pub(crate) fn remove_where(&self, meant: impl Fn(&T) -> bool) -> Vec<Arc<T>> {
        let mut slots = self.slots.lock();
        let mut removed = Vec::new();
        for index in 0..slots.slots.len() {
            let object =
                slots.slots.get_mut(index).and_then(|slot| slot.object.take_if(|object| meant(object)));
            if let Some(object) = object {
                slots.retire(index);
                removed.push(object);
            }
        }
        removed
    }

    /// The handle of the first object that is meant.
    pub(crate) fn find(&self, meant: impl Fn(&T) -> bool) -> Option<RawHandle> {
        self.first(meant).map(|(handle, _)| handle)
    }

    /// All objects, in the order of their handles.
    pub(crate) fn objects(&self) -> Vec<Arc<T>> {
        let slots = self.slots.lock();
        slots.slots.iter().filter_map(|slot| slot.object.clone()).collect()
    }

    /// The first object that is meant.
    pub(crate) fn find_object(&self, meant: impl Fn(&T) -> bool) -> Option<Arc<T>> {
        self.first(meant).map(|(_, object)| object)
    }

    fn first(&self, meant: impl Fn(&T) -> bool) -> Option<(RawHandle, Arc<T>)> {
        let slots = self.slots.lock();
        slots.slots.iter().enumerate().find_map(|(index, slot)| {
            let object = slot.object.as_ref().filter(|object| meant(object))?;
            Some((self.encode(index, slot.generation), object.clone()))
        })
    }

    fn encode(&self, index: usize, generation: u32) -> RawHandle {
        (self.kind as usize) << 56 | (generation as usize) << 32 | index << 4
    }

    fn decode(&self, handle: RawHandle) -> Option<(usize, u32)> {
        let is_of_kind = handle >> 56 == self.kind as usize && handle & 0xf == 0;
        is_of_kind.then_some(((handle & 0xffff_ffff) >> 4, (handle >> 32 & 0xff_ffff) as u32))
    }
}

impl<T> Slots<T> {
    /// Makes a slot free for another object.
    fn retire(&mut self, index: usize) {
        if let Some(slot) = self.slots.get_mut(index) {
            slot.generation += 1;
            if slot.generation < GENERATIONS {
                self.free.push(index);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_live_handle_of_the_kind_is_found() {
        let events = HandleTable::new(HandleKind::Event);
        let streams = HandleTable::new(HandleKind::Stream);
        let event = events.insert(Arc::new(1)).unwrap();
        let stream = streams.insert(Arc::new(2)).unwrap();
        assert_eq!(events.get(event).as_deref(), Some(&1));
        assert_eq!(events.get(stream), None);
        for wild in [0, 1, 0x10, 0xdead_beef, usize::MAX, event + 1, event | 1 << 40] {
            assert_eq!(events.get(wild), None, "{wild:#x}");
        }
        assert_eq!(events.remove(event).as_deref(), Some(&1));
        let again = events.insert(Arc::new(3)).unwrap();
        assert_ne!(again, event);
        assert_eq!((events.get(event), events.remove(event)), (None, None));
        assert_eq!(events.remove_where(|object| *object == 3).len(), 1);
        assert_eq!(events.get(again), None);
    }
}
