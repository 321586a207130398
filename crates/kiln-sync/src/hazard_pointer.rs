//! Hazard pointers: which objects each thread is using right now.
//!
//! A thread that uses an object found in a table publishes the object's address in one of its slots, and clears the slot when it is done.
//! A thread that removes an object looks at the slots of all threads before it drops the object. Publishing costs two plain stores and a
//! [light](crate::light) fence; the thread that removes runs a [heavy](crate::heavy) one.
//!
//! The slots of a thread are kept when it ends and given to the next one, so that threads that read them need no lock against it.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicUsize, Ordering};

use crate::asymmetric_fence::{heavy, is_light_cheap, light};

/// Objects one thread may protect at once; a launch uses a stream and a kernel, a copy a stream and two blocks.
const SLOTS: usize = 6;

/// The slots of one thread, on a cache line that they share with nothing else.
#[repr(align(64))]
struct ThreadSlots {
    /// Addresses; 0 is none.
    addresses: [AtomicUsize; SLOTS],
    /// A bit for each slot in use. Only their thread looks at it.
    used: AtomicU8,
    taken: AtomicBool,
    next: Option<&'static ThreadSlots>,
}

/// The slots of all threads there ever were at once.
static ALL: AtomicPtr<ThreadSlots> = AtomicPtr::new(std::ptr::null_mut());

thread_local! {
    /// This thread's slots, once it has some. Without a destructor, so that a look is a load.
    static OWN: Cell<Option<&'static ThreadSlots>> = const { Cell::new(None) };
    /// Gives them back.
    static LEASE: Lease = Lease(take_slots());
}

/// The right to some slots until the thread ends.
struct Lease(&'static ThreadSlots);

/// An address that this thread protects until it is [cleared](Self::clear). It stays with its thread.
// Without a destructor: its users have one, and two in a row are more code than the path of a launch should have.
#[must_use = "the address is protected until it is cleared"]
pub struct HazardPointer {
    slots: &'static ThreadSlots,
    index: u8,
    stays: PhantomData<*const ()>,
}

impl HazardPointer {
    /// Publishes an address. None if all slots of this thread are in use, the thread is ending, or the system has no cheap fence; the
    /// caller then has to protect the object in another way.
    ///
    /// The object has to be looked up after this, and may be gone already.
    #[inline(always)]
    pub fn protect(address: usize) -> Option<Self> {
        let slots = match OWN.get() {
            Some(slots) => slots,
            None => own_slots()?,
        };
        let used = slots.used.load(Ordering::Relaxed);
        let index = used.trailing_ones() as usize;
        let slot = slots.addresses.get(index)?;
        slots.used.store(used | 1 << index, Ordering::Relaxed);
        slot.store(address, Ordering::Relaxed);
        light();
        Some(Self { slots, index: index as u8, stays: PhantomData })
    }

    /// Ends the protection. The caller has to look after this whether the object waits to be dropped.
    #[inline(always)]
    pub fn clear(self) {
        if let Some(slot) = self.slots.addresses.get(usize::from(self.index)) {
            slot.store(0, Ordering::Release);
        }
        light();
        let used = self.slots.used.load(Ordering::Relaxed);
        self.slots.used.store(used & !(1 << self.index), Ordering::Relaxed);
    }
}

/// Slots for a thread that has none yet.
#[cold]
fn own_slots() -> Option<&'static ThreadSlots> {
    if !is_light_cheap() {
        return None;
    }
    let slots = LEASE.try_with(|lease| lease.0).ok()?;
    OWN.set(Some(slots));
    Some(slots)
}

/// Whether some thread protects an address. The caller has made the object impossible to find before.
pub fn is_protected(address: usize) -> bool {
    heavy();
    let mut next = first_slots();
    while let Some(slots) = next {
        if slots.addresses.iter().any(|slot| slot.load(Ordering::Acquire) == address) {
            return true;
        }
        next = slots.next;
    }
    false
}

impl Drop for Lease {
    /// A value that is dropped later may still protect an address; the slots then stay with the thread that is gone.
    fn drop(&mut self) {
        OWN.set(None);
        if self.0.used.load(Ordering::Relaxed) == 0 {
            self.0.taken.store(false, Ordering::Release);
        }
    }
}

fn first_slots() -> Option<&'static ThreadSlots> {
    // SAFETY: the pointer is null or came from `Box::into_raw` in `take_slots`, published with release and never freed.
    unsafe { ALL.load(Ordering::Acquire).as_ref() }
}

fn take_slots() -> &'static ThreadSlots {
    let mut next = first_slots();
    while let Some(slots) = next {
        if slots.taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            return slots;
        }
        next = slots.next;
    }
    let mut head = ALL.load(Ordering::Acquire);
    let slots: *mut ThreadSlots = Box::into_raw(Box::new(ThreadSlots {
        addresses: [const { AtomicUsize::new(0) }; SLOTS],
        used: AtomicU8::new(0),
        taken: AtomicBool::new(true),
        next: None,
    }));
    loop {
        // SAFETY: the box was leaked just now and no other thread knows it before the exchange below; `head` is null or leaked.
        unsafe { (*slots).next = head.as_ref() };
        match ALL.compare_exchange_weak(head, slots, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: leaked, and from here on written through its atomics alone.
            Ok(_) => return unsafe { &*slots },
            Err(now) => head = now,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_protected_until_it_is_cleared() {
        let object = 7_u8;
        let address = std::ptr::from_ref(&object).addr();
        assert!(!is_protected(address));
        let Some(first) = HazardPointer::protect(address) else { return };
        let second = HazardPointer::protect(address).unwrap();
        first.clear();
        assert!(is_protected(address));
        assert!(std::thread::spawn(move || is_protected(address)).join().unwrap(), "every thread sees it");
        second.clear();
        assert!(!is_protected(address));
    }

    #[test]
    fn a_thread_protects_so_many_and_no_more() {
        let object = [0_u8; SLOTS + 1];
        let address = |at: usize| std::ptr::from_ref(&object[at]).addr();
        let protected: Vec<_> = (0..SLOTS).filter_map(|at| HazardPointer::protect(address(at))).collect();
        if protected.is_empty() {
            return; // Such a system has no cheap fence.
        }
        assert!(HazardPointer::protect(address(SLOTS)).is_none());
        protected.into_iter().for_each(HazardPointer::clear);
        HazardPointer::protect(address(SLOTS)).unwrap().clear();
    }
}
