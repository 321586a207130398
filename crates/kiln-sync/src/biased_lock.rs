//! A lock that costs its usual holder no atomic read-modify-write.
//!
//! A launch takes several locks that no other thread wants: its stream's, and that of each of its blocks. An allocation takes the lock of
//! its thread's cache. A mutex costs an atomic exchange to take and another to release, several nanoseconds each while the data itself is
//! in the cache. A biased lock has an *owner*: that thread takes it with a store and a load, and releases it with a store. Any other
//! thread *takes over*: it sets `held`, removes the owner, has the kernel fence every processor ([`heavy`](crate::heavy)) and waits until
//! the owner is out. From then on the lock is an ordinary one, taken by an exchange and released by a store.
//!
//! Whether the bias comes back is the one choice: see [`Bias`]. It comes back when the thread that it was made for takes the lock the
//! ordinary way, which costs nothing more, because that thread is then alone inside.
//!
//! ```text
//!   owner:           inside = true;  light fence;  owner still me?    ...   inside = false
//!   another thread:  held = true (exchange);  owner = none;  heavy fence;  wait for !inside    ...   held = false
//!   bias returns:    held = true (exchange);  owner is none, !inside;  inside = true;  owner = me;  held = false    ...   inside = false
//! ```
//!
//! Invariant: a guard exists for the owner (`inside` is set, and `owner` was seen unchanged after the fence) or for the thread that set
//! `held` and then saw `owner` empty and `inside` false; never for both. `owner` is emptied only by a thread that has set `held`, which
//! runs the heavy fence before it reads `inside`: either it sees `inside`, or the owner sees that it is the owner no longer. `owner` is
//! filled only by a thread that has set `held` and is alone inside, and then it is filled with that thread's own number, so no thread
//! ever becomes owner without knowing. A thread that finds `owner` empty after it has set `held` needs no fence: the thread that emptied it ran one.
//!
//! Releasing wakes no thread: a thread that finds the lock taken looks again, at once a few times, then after yielding, then after short
//! sleeps. A sleep may end a little late, which is the price for threads that collide, and only while they do.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::AtomicU32 as PlainU32;
use std::time::Duration;

use crate::sync_shim::{
    AtomicBool, AtomicU32, Cell, Ordering, heavy, is_light_cheap, known_thread, light, sleep, spin_loop,
    this_thread, try_light, yield_now,
};

/// Looks before the processor is given to another thread, which may be the one that holds the lock.
const SPINS: u32 = 64;
/// Looks before a thread sleeps between them.
const WAKEFUL: u32 = SPINS + 32;
/// How long a sleep is meant to be; the lock may be held over a call of the driver, which takes a few microseconds and rarely longer.
const NAP: Duration = Duration::from_micros(20);
/// The owner of a lock that no thread owns.
const NONE: u32 = 0;
/// Returns of a bias that has no limit.
const UNLIMITED: u32 = u32::MAX;
/// Locks of [`Bias::Once`] taken over before new ones have no owner. Taking one over costs a few microseconds, and a program in which
/// that happens often is one whose data wanders between threads.
const TAKE_OVERS: u32 = if cfg!(any(kiln_loom, kiln_shuttle)) { u32::MAX } else { 256 };

/// Locks of [`Bias::Once`] that another thread took over, in this process.
static TAKEN_OVER: PlainU32 = PlainU32::new(0);

/// For how long the thread that made a lock owns it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bias {
    /// Until another thread takes the lock. For data that has one user at a time and may move to another for good.
    Once,
    /// The owner gets it back after so many take-overs by [`BiasedLock::lock`]. For data that one thread uses and others share at times.
    Returns(u32),
    /// The owner always gets it back. For the data of one thread that others look at when they must.
    Always,
}

/// A value behind a lock that one thread takes nearly always.
///
/// ```
/// use kiln_sync::BiasedLock;
///
/// let lock = BiasedLock::new(1);
/// let mut guard = lock.lock();
/// assert!(lock.try_lock().is_none());
/// *guard += 1;
/// drop(guard);
/// assert_eq!(*lock.lock(), 2);
/// ```
// What is looked at first stands first, so that a small value shares its cache line.
#[repr(C)]
pub struct BiasedLock<T> {
    /// The thread that takes it with a store and a load, or none.
    owner: AtomicU32,
    /// The owner holds it. Set by the owner alone.
    inside: AtomicBool,
    /// Another thread holds it or is about to.
    held: AtomicBool,
    /// How often the bias may return. Written by a thread that has set `held`.
    returns: AtomicU32,
    /// The thread to which it returns.
    home: u32,
    value: Cell<T>,
}

// SAFETY: the value is reached only through a guard, of which there is at most one, as the invariant says; a store with release ends each
// and a load with acquire begins the next, so that one holder's writes are seen by the other.
unsafe impl<T: Send> Sync for BiasedLock<T> {}
// SAFETY: moving the lock moves the value.
unsafe impl<T: Send> Send for BiasedLock<T> {}

impl<T> BiasedLock<T> {
    /// A lock that this thread owns until another one takes it.
    pub fn new(value: T) -> Self {
        Self::with_bias(value, Bias::Once)
    }

    /// A lock that this thread owns.
    ///
    /// A thread is known by its number. When it ends, the next thread that gets the number owns its locks.
    pub fn with_bias(value: T, bias: Bias) -> Self {
        let returns = match bias {
            Bias::Once => 0,
            Bias::Returns(times) => times.min(UNLIMITED - 1),
            Bias::Always => UNLIMITED,
        };
        let wanders = bias == Bias::Once && TAKEN_OVER.load(Ordering::Relaxed) >= TAKE_OVERS;
        let home = this_thread();
        Self {
            owner: AtomicU32::new(if !wanders && is_light_cheap() { home } else { NONE }),
            inside: AtomicBool::new(false),
            held: AtomicBool::new(false),
            returns: AtomicU32::new(returns),
            home,
            value: Cell::new(value),
        }
    }

    /// The value, unless a thread holds it.
    #[inline(always)]
    pub fn try_lock(&self) -> Option<BiasedGuard<'_, T>> {
        match self.try_lock_owned() {
            Owned::Guard(guard) => Some(guard),
            Owned::Taken => None,
            Owned::NotMine => self.try_lock_shared(),
        }
    }

    /// The value, if this thread owns the lock and there is no guard. Calls no function, so that a caller on a hot path need save no
    /// register; `None` says nothing about whether [`try_lock`](Self::try_lock) succeeds.
    #[inline(always)]
    pub fn try_lock_owner(&self) -> Option<BiasedGuard<'_, T>> {
        let me = known_thread();
        if me == NONE || self.owner.load(Ordering::Relaxed) != me || self.inside.load(Ordering::Acquire) {
            return None;
        }
        self.inside.store(true, Ordering::Relaxed);
        if try_light() && self.owner.load(Ordering::Acquire) != NONE {
            return Some(BiasedGuard { lock: self, flag: &self.inside });
        }
        self.inside.store(false, Ordering::Release);
        None
    }

    /// The value, as soon as no other thread holds it.
    #[inline(always)]
    pub fn lock(&self) -> BiasedGuard<'_, T> {
        match self.try_lock() {
            Some(guard) => guard,
            None => self.lock_slowly(true),
        }
    }

    /// As [`lock`](Self::lock), for a look that comes too rarely to count against the bias.
    pub fn visit(&self) -> BiasedGuard<'_, T> {
        match self.try_lock_owned() {
            Owned::Guard(guard) => guard,
            Owned::Taken | Owned::NotMine => self.lock_slowly(false),
        }
    }

    /// The value, which no other thread can reach.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// The way of the owner.
    #[inline(always)]
    fn try_lock_owned(&self) -> Owned<'_, T> {
        if self.owner.load(Ordering::Relaxed) != this_thread() {
            return Owned::NotMine;
        }
        // The guard may be with another thread, or further up in this one.
        if self.inside.load(Ordering::Acquire) {
            return Owned::Taken;
        }
        self.inside.store(true, Ordering::Relaxed);
        light();
        // If it changed, it is none: no thread but this one writes this one's number there.
        if self.owner.load(Ordering::Acquire) != NONE {
            return Owned::Guard(BiasedGuard { lock: self, flag: &self.inside });
        }
        self.inside.store(false, Ordering::Release);
        Owned::NotMine
    }

    /// The way of threads that are not the owner.
    #[inline]
    fn try_lock_shared(&self) -> Option<BiasedGuard<'_, T>> {
        if !self.try_hold() {
            return None;
        }
        if self.owner.load(Ordering::Relaxed) != NONE {
            self.take_over(true);
        }
        if self.inside.load(Ordering::Acquire) {
            self.held.store(false, Ordering::Release);
            return None;
        }
        Some(self.admitted())
    }

    /// Sets `held`, unless another thread has. A compare-exchange, because it writes nothing when it fails.
    #[inline(always)]
    fn try_hold(&self) -> bool {
        self.held.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Waits for the lock, and once it has set `held` for the owner to leave.
    #[cold]
    #[inline(never)]
    fn lock_slowly(&self, counts: bool) -> BiasedGuard<'_, T> {
        let mut looks = 0_u32;
        while !self.try_hold() {
            while self.held.load(Ordering::Relaxed) {
                pause(&mut looks);
            }
        }
        if self.owner.load(Ordering::Relaxed) != NONE {
            self.take_over(counts);
        }
        while self.inside.load(Ordering::Acquire) {
            pause(&mut looks);
        }
        self.admitted()
    }

    /// Ends the ownership; `held` is set. The owner may still be inside, but does not get in again this way.
    #[cold]
    fn take_over(&self, counts: bool) {
        self.owner.store(NONE, Ordering::Relaxed);
        heavy();
        match self.returns.load(Ordering::Relaxed) {
            0 => drop(TAKEN_OVER.fetch_add(1, Ordering::Relaxed)),
            UNLIMITED => {}
            left => self.returns.store(left - u32::from(counts), Ordering::Relaxed),
        }
    }

    /// A guard for this thread, which has set `held` and is alone: no owner, and none inside. The bias returns if this is its home.
    #[inline]
    fn admitted(&self) -> BiasedGuard<'_, T> {
        if self.returns.load(Ordering::Relaxed) > 0 && self.home == this_thread() && is_light_cheap() {
            self.inside.store(true, Ordering::Relaxed);
            self.owner.store(self.home, Ordering::Relaxed);
            self.held.store(false, Ordering::Release);
            return BiasedGuard { lock: self, flag: &self.inside };
        }
        BiasedGuard { lock: self, flag: &self.held }
    }
}

/// What came of the owner's way.
enum Owned<'a, T> {
    Guard(BiasedGuard<'a, T>),
    /// A guard of the owner exists.
    Taken,
    /// This thread is not the owner, or not any more.
    NotMine,
}

/// Lets some time pass, more after many looks.
fn pause(looks: &mut u32) {
    match *looks {
        0..SPINS => spin_loop(),
        SPINS..WAKEFUL => yield_now(),
        _ => sleep(NAP),
    }
    *looks = looks.saturating_add(1);
}

impl<T> fmt::Debug for BiasedLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BiasedLock")
    }
}

/// The right to the value of a [`BiasedLock`] until it is dropped.
#[must_use = "the lock is released when the guard is dropped"]
pub struct BiasedGuard<'a, T> {
    lock: &'a BiasedLock<T>,
    /// What says that the lock is held: its `inside` or its `held`.
    flag: &'a AtomicBool,
}

// SAFETY: a guard gives access to the value as a reference does. The thread that drops it clears the flag that its making set, and the
// owner looks at `inside` before it sets it, so a guard that is with another thread keeps even the owner out.
unsafe impl<T: Send> Send for BiasedGuard<'_, T> {}
// SAFETY: shared, a guard gives out shared references to the value.
unsafe impl<T: Sync> Sync for BiasedGuard<'_, T> {}

impl<T> Deref for BiasedGuard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: this guard is the only one, as said at `Sync`, and lives as long as the reference.
        self.lock.value.with_mut(|value| unsafe { &*value })
    }
}

impl<T> DerefMut for BiasedGuard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and `&mut self` makes the reference the only one.
        self.lock.value.with_mut(|value| unsafe { &mut *value })
    }
}

impl<T> Drop for BiasedGuard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.flag.store(false, Ordering::Release);
    }
}

#[cfg(test)]
#[cfg(not(any(kiln_loom, kiln_shuttle)))]
mod tests;
