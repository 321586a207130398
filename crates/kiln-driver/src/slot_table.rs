//! A lock-free table of objects by handle (slot and generation).
//!
//! A lookup *pins* its object: while the pin lives the object is not dropped, even if another thread removes it
//! meanwhile. That is what makes every call of a driver safe: a stream cannot be destroyed under a launch that
//! is on its way to it. Removing never waits; if there is a pin, the last one that is dropped drops the object.
//!
//! A pin is a [hazard pointer](HazardPointer) of the pinning thread, which costs two plain stores; a thread that holds more pins than it
//! has slots for counts the rest in the object's slot. One word per slot holds the generation, whether the slot is
//! live or dying, and that count. Slots live in chunks that never move, each twice as long as the one before. Taking and returning
//! slots is rare and uses a mutex, and so does ending a slot.
//!
//! Invariant: the value of a slot is initialised from the moment `LIVE` is set until the one thread that finds it dying with no pin of
//! either kind, under the mutex, takes it out. A pin that is made after `DYING` is set sees it and is not given out.

use std::cell::UnsafeCell;
use std::fmt;
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use kiln_sync::{HazardPointer, is_protected};

use crate::error::{Error, Refusal};
use crate::handle::{DeviceKey, Handle, Kind};

const FIRST_CHUNK_SLOTS: usize = 64;
const CHUNKS: usize = 20;
const LIVE: u64 = 1 << 31;
const DYING: u64 = 1 << 30;
const PINS: u64 = DYING - 1;

/// A table of objects of one kind, belonging to one device.
///
/// ```
/// use kiln_driver::{DeviceKey, Slots, kind};
///
/// let streams = Slots::<kind::Stream, &str>::new(DeviceKey::fresh());
/// let copy = streams.insert("copy stream").unwrap();
/// assert_eq!(*streams.pin(copy).unwrap(), "copy stream");
/// assert_eq!(streams.remove(copy).unwrap(), Some("copy stream"));
/// assert!(streams.pin(copy).is_err());
/// ```
// In this order and place, so that a lookup of one of the first objects looks at one line of the table.
#[repr(C, align(64))]
pub struct Slots<K, T> {
    device: DeviceKey,
    chunks: [OnceLock<Box<[Slot<T>]>>; CHUNKS],
    free: Mutex<FreeSlots>,
    live: AtomicUsize,
    kind: std::marker::PhantomData<fn() -> K>,
}

// On separate cache lines: what a launch looks at of a kernel lies in the first, and no thread feels another one's pins.
#[repr(C, align(64))]
struct Slot<T> {
    state: AtomicU64,
    value: UnsafeCell<MaybeUninit<T>>,
}

#[derive(Default)]
struct FreeSlots {
    returned: Vec<u32>,
    used: u32,
}

// SAFETY: a value is reached by `&T` from any thread that pins it (so `T: Sync`) and is moved in and out from
// any thread (so `T: Send`); the state word orders both, as the invariant above says.
unsafe impl<K, T: Send + Sync> Sync for Slots<K, T> {}
// SAFETY: as above; moving the table moves the values.
unsafe impl<K, T: Send> Send for Slots<K, T> {}

impl<K: Kind, T> Slots<K, T> {
    /// An empty table for the objects of one device.
    pub fn new(device: DeviceKey) -> Self {
        Self {
            device,
            chunks: [const { OnceLock::new() }; CHUNKS],
            free: Mutex::default(),
            live: AtomicUsize::new(0),
            kind: std::marker::PhantomData,
        }
    }

    /// Puts an object in and names it.
    ///
    /// # Errors
    /// Refused when the table is full (64 million objects).
    pub fn insert(&self, value: T) -> Result<Handle<K>, Error> {
        let index = self.take_index()?;
        let slot = self.slot(index).ok_or_else(|| table_full::<K>())?;
        let generation = slot.state.load(Ordering::Relaxed) >> 32;
        // SAFETY: the index was free, so the slot is not live: no pin exists and none can be made, and
        // `take_index` gave it to this thread alone.
        unsafe { (*slot.value.get()).write(value) };
        slot.state.store(generation << 32 | LIVE, Ordering::Release);
        self.live.fetch_add(1, Ordering::Relaxed);
        Ok(Handle::new(self.device, index, generation as u32))
    }

    /// The object, held in place until the pin is dropped.
    ///
    /// # Errors
    /// Refused as foreign if another device gave the handle out, as stale if the object is gone.
    // Always inlined: the way back through memory of what this returns would cost more than all it does.
    #[inline(always)]
    pub fn pin(&self, handle: Handle<K>) -> Result<Pinned<'_, K, T>, Error> {
        let slot = match self.slot(handle.slot()) {
            Some(slot) if handle.device() == self.device => slot,
            _ => return Err(self.unknown(handle)),
        };
        let hazard = HazardPointer::protect(std::ptr::from_ref(slot).addr());
        if hazard.is_none() {
            slot.count_pin(handle)?;
        }
        if slot.state.load(Ordering::Acquire) & !PINS != wanted(handle) {
            return Err(self.too_late(slot, handle, hazard));
        }
        Ok(Pinned { table: self, slot, index: handle.slot(), hazard })
    }

    /// A pin that comes too late is dropped as one that was good is: the slot may be waiting for it by now.
    #[cold]
    fn too_late(&self, slot: &Slot<T>, handle: Handle<K>, hazard: Option<HazardPointer>) -> Error {
        drop(Pinned { table: self, slot, index: handle.slot(), hazard });
        stale(handle)
    }

    /// Ends the handle. The object comes back unless a pin is still held; then the last pin drops it.
    ///
    /// # Errors
    /// As for [`pin`](Self::pin); of two threads that remove the same handle one is refused.
    pub fn remove(&self, handle: Handle<K>) -> Result<Option<T>, Error> {
        let slot = self.find(handle)?;
        let marked = slot.state.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |state| {
            (state & !PINS == wanted(handle)).then_some(state | DYING)
        });
        match marked {
            Ok(_) => Ok(self.take_out(slot, handle.slot(), wanted(handle) | DYING)),
            Err(_) => Err(stale(handle)),
        }
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.live.load(Ordering::Relaxed)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The handles of all objects, in slot order.
    pub fn handles(&self) -> Vec<Handle<K>> {
        let used = self.free.lock().unwrap_or_else(PoisonError::into_inner).used;
        (0..used)
            .filter_map(|index| {
                let state = self.slot(index)?.state.load(Ordering::Acquire);
                (state & (LIVE | DYING) == LIVE)
                    .then(|| Handle::new(self.device, index, (state >> 32) as u32))
            })
            .collect()
    }

    fn find(&self, handle: Handle<K>) -> Result<&Slot<T>, Error> {
        match self.slot(handle.slot()) {
            Some(slot) if handle.device() == self.device => Ok(slot),
            _ => Err(self.unknown(handle)),
        }
    }

    #[cold]
    fn unknown(&self, handle: Handle<K>) -> Error {
        if handle.device() == self.device {
            return stale(handle);
        }
        Error::refused("handle", Refusal::Foreign { handle: handle.to_string() })
    }

    #[inline(always)]
    fn slot(&self, index: u32) -> Option<&Slot<T>> {
        let (chunk, offset) = locate(index);
        self.chunks.get(chunk)?.get()?.get(offset)
    }

    fn take_index(&self) -> Result<u32, Error> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = free.returned.pop() {
            return Ok(index);
        }
        let index = free.used;
        let (chunk, _) = locate(index);
        let slots = self.chunks.get(chunk).ok_or_else(|| table_full::<K>())?;
        slots.get_or_init(|| (0..FIRST_CHUNK_SLOTS << chunk).map(|_| Slot::empty()).collect());
        free.used += 1;
        Ok(index)
    }

    /// Moves the value out of a slot that was seen dying without counted pins, if no pin is left, and makes the slot free again.
    /// A thread that drops the last pin at the same time comes here, too; one of the two gets the value.
    #[cold]
    fn take_out(&self, slot: &Slot<T>, index: u32, seen: u64) -> Option<T> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = slot.state.load(Ordering::Acquire) == seen;
        if !is_same || is_protected(std::ptr::from_ref(slot).addr()) {
            return None;
        }
        // SAFETY: the slot was marked as dying, in its present life, before the hazards of all threads were looked at: a pin that is
        // made from now on sees the mark, one made before would have been found there or in the count. The mutex is held, so no thread
        // else is here. The value was initialised when the slot became live.
        let value = unsafe { (*slot.value.get()).assume_init_read() };
        let generation = (seen >> 32) + 1;
        slot.state.store(generation << 32, Ordering::Release);
        self.live.fetch_sub(1, Ordering::Relaxed);
        if generation < u64::from(u32::MAX) {
            free.returned.push(index);
        }
        Some(value)
    }
}

impl<K, T> Drop for Slots<K, T> {
    fn drop(&mut self) {
        for slot in self.chunks.iter_mut().filter_map(OnceLock::get_mut).flat_map(|chunk| chunk.iter_mut()) {
            if *slot.state.get_mut() & LIVE != 0 {
                // SAFETY: live means initialised, and `&mut self` means that no pin is left.
                unsafe { slot.value.get_mut().assume_init_drop() };
            }
        }
    }
}

impl<K: Kind, T> fmt::Debug for Slots<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} objects", self.len(), K::NAME)
    }
}

impl<T> Slot<T> {
    fn empty() -> Self {
        Self { state: AtomicU64::new(1 << 32), value: UnsafeCell::new(MaybeUninit::uninit()) }
    }

    /// Pins by count, for a thread that has no word left.
    #[cold]
    fn count_pin<K: Kind>(&self, handle: Handle<K>) -> Result<(), Error> {
        let counted = self.state.fetch_update(Ordering::Acquire, Ordering::Relaxed, |state| {
            (state & !PINS == wanted(handle)).then_some(state + 1)
        });
        counted.map(|_| ()).map_err(|_| stale(handle))
    }

    #[cold]
    fn uncount_pin(&self) {
        self.state.fetch_sub(1, Ordering::AcqRel);
    }
}

/// An object that stays in place while this lives.
pub struct Pinned<'a, K: Kind, T> {
    table: &'a Slots<K, T>,
    slot: &'a Slot<T>,
    index: u32,
    /// Nothing, if the pin is counted in the slot.
    hazard: Option<HazardPointer>,
}

impl<K: Kind, T> Deref for Pinned<'_, K, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the pin was made while the slot was live, so the value is initialised and no thread takes it out before `drop` takes
        // the pin back.
        unsafe { (*self.slot.value.get()).assume_init_ref() }
    }
}

impl<K: Kind, T> Drop for Pinned<'_, K, T> {
    #[inline(always)]
    fn drop(&mut self) {
        match self.hazard.take() {
            Some(hazard) => hazard.clear(),
            None => self.slot.uncount_pin(),
        }
        // A pin that came too late may have kept a later object of the slot from being dropped, so the generation does not matter.
        let state = self.slot.state.load(Ordering::Acquire);
        if state & (LIVE | DYING | PINS) == LIVE | DYING {
            drop(self.table.take_out(self.slot, self.index, state));
        }
    }
}

/// The state of the slot of a live object, but for the count of pins.
#[inline]
fn wanted<K: Kind>(handle: Handle<K>) -> u64 {
    u64::from(handle.generation()) << 32 | LIVE
}

/// Chunk and offset of a slot: chunk `c` holds `64 << c` slots.
#[inline]
fn locate(index: u32) -> (usize, usize) {
    // Few programs have more of anything than the first chunk holds.
    if (index as usize) < FIRST_CHUNK_SLOTS {
        return (0, index as usize);
    }
    let shifted = index as usize + FIRST_CHUNK_SLOTS;
    let chunk = (shifted / FIRST_CHUNK_SLOTS).ilog2() as usize;
    (chunk, shifted - (FIRST_CHUNK_SLOTS << chunk))
}

#[cold]
fn stale<K: Kind>(handle: Handle<K>) -> Error {
    Error::refused("handle", Refusal::Stale { handle: handle.to_string() })
}

fn table_full<K: Kind>() -> Error {
    Error::refused("handle", Refusal::Limit { what: K::NAME, limit: (FIRST_CHUNK_SLOTS as u64) << CHUNKS })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::{Arc, Barrier};

    use super::*;
    use crate::handle::kind;

    #[test]
    fn slots_cover_every_index_once() {
        let mut next = (0, 0);
        for index in 0..100_000 {
            let at = locate(index);
            assert_eq!(at, next, "index {index}");
            next = if at.1 + 1 == FIRST_CHUNK_SLOTS << at.0 { (at.0 + 1, 0) } else { (at.0, at.1 + 1) };
        }
    }

    #[test]
    fn a_handle_of_another_device_is_foreign_and_an_old_one_is_stale() {
        let here = Slots::<kind::Event, u8>::new(DeviceKey::fresh());
        let there = Slots::<kind::Event, u8>::new(DeviceKey::fresh());
        let handle = here.insert(7).unwrap();
        assert!(matches!(there.pin(handle).err().unwrap().refusal(), Some(Refusal::Foreign { .. })));
        here.remove(handle).unwrap();
        let again = here.insert(8).unwrap();
        assert_eq!((again.slot(), again.generation()), (handle.slot(), 2));
        assert!(matches!(here.pin(handle).err().unwrap().refusal(), Some(Refusal::Stale { .. })));
        assert!(here.remove(handle).is_err());
        assert_eq!(*here.pin(again).unwrap(), 8);
    }

    #[test]
    fn the_last_pin_drops_what_was_removed_under_it() {
        struct Counted(Arc<AtomicU32>);
        impl Drop for Counted {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let drops = Arc::new(AtomicU32::new(0));
        let table = Slots::<kind::Stream, Counted>::new(DeviceKey::fresh());
        let handle = table.insert(Counted(drops.clone())).unwrap();
        let (first, second) = (table.pin(handle).unwrap(), table.pin(handle).unwrap());
        assert!(table.remove(handle).unwrap().is_none());
        assert!(table.pin(handle).is_err());
        drop(first);
        assert_eq!(drops.load(Ordering::Relaxed), 0);
        drop(second);
        assert_eq!(drops.load(Ordering::Relaxed), 1);
        assert!(table.is_empty());
    }

    #[test]
    fn threads_that_pin_and_remove_never_see_a_dead_value() {
        const ALIVE: u64 = 0x600d;
        struct Canary(AtomicU64);
        impl Drop for Canary {
            fn drop(&mut self) {
                self.0.store(0xdead, Ordering::SeqCst);
            }
        }
        let rounds = if cfg!(miri) { 20 } else { 2_000 };
        let table = Slots::<kind::Stream, Canary>::new(DeviceKey::fresh());
        let barrier = Barrier::new(3);
        let shared = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..rounds {
                        barrier.wait();
                        let packed = shared.load(Ordering::SeqCst);
                        let handle = Handle::new(table.device, (packed >> 32) as u32, packed as u32);
                        while let Ok(pin) = table.pin(handle) {
                            assert_eq!(pin.0.load(Ordering::SeqCst), ALIVE);
                        }
                        barrier.wait();
                    }
                });
            }
            for _ in 0..rounds {
                let handle = table.insert(Canary(AtomicU64::new(ALIVE))).unwrap();
                let packed = u64::from(handle.slot()) << 32 | u64::from(handle.generation());
                shared.store(packed, Ordering::SeqCst);
                barrier.wait();
                drop(table.remove(handle).unwrap());
                barrier.wait();
            }
        });
        assert!(table.is_empty());
    }

    #[test]
    fn pins_that_come_too_late_keep_nothing_from_being_dropped() {
        struct Counted<'a>(&'a AtomicU32);
        impl Drop for Counted<'_> {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let rounds = if cfg!(miri) { 50 } else { 20_000 };
        let drops = AtomicU32::new(0);
        let table = Slots::<kind::Event, Counted<'_>>::new(DeviceKey::fresh());
        let stop = AtomicU32::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut generation = 1;
                while stop.load(Ordering::Relaxed) == 0 {
                    // Handles of objects that are long gone, whose slot has another one by now.
                    generation = generation % rounds + 1;
                    drop(table.pin(Handle::new(table.device, 0, generation)));
                }
            });
            for _ in 0..rounds {
                let handle = table.insert(Counted(&drops)).unwrap();
                drop(table.remove(handle).unwrap());
            }
            stop.store(1, Ordering::Relaxed);
        });
        assert!(table.is_empty(), "{} objects are left", table.len());
        assert_eq!(drops.load(Ordering::Relaxed), rounds);
    }

    #[test]
    fn a_thread_may_hold_more_pins_than_it_has_words() {
        let table = Slots::<kind::Event, u32>::new(DeviceKey::fresh());
        let handles: Vec<_> = (0..20).map(|value| table.insert(value).unwrap()).collect();
        let pins: Vec<_> = handles.iter().map(|handle| table.pin(*handle).unwrap()).collect();
        for handle in &handles {
            assert_eq!(table.remove(*handle).unwrap(), None);
        }
        assert!(pins.iter().enumerate().all(|(at, pin)| **pin == at as u32));
        assert_eq!(table.len(), 20);
        drop(pins);
        assert!(table.is_empty());
    }
}
