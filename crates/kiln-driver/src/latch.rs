//! A lock that costs its usual holder no locked instruction.
//!
//! A launch takes several locks that nobody else wants: its stream's turn, and each of its blocks. A mutex costs an atomic exchange to
//! take and another to let go, seven nanoseconds each while the data itself is in the cache. A latch belongs at first to the thread
//! that made it: that thread takes it with a store and a look, and lets go with a store. The first other thread that wants it takes it
//! over: it says so, has the kernel run a fence everywhere (see `asymmetric`), and waits until the owner is out. From then on it is an
//! ordinary lock for everybody, taken by an exchange and let go by a store. A program in which that happens often is one whose blocks
//! wander between threads, and for such a program new latches belong to nobody.
//!
//! Letting go never wakes anybody: whoever finds the latch held looks again, at once a few times, then after giving the processor away,
//! then after short naps. A nap may end a little late, which is the price for those who collide, and only while they do.
//!
//! ```text
//!   owner inside:   inside = true;  light fence;  owner still me?   ...   inside = false
//!   another thread: held = true (exchange);  owner = nobody;  heavy fence;  wait for !inside   ...   held = false
//! ```
//!
//! Invariant: a guard exists for the owner (`inside`, `owner` seen unchanged after the fence) or for the thread that set `held` and then
//! saw `owner` empty and `inside` false after a fence; never for both, because at least one of them sees what the other wrote. Where
//! the kernel offers no such fence a latch belongs to nobody from the start.

use std::cell::UnsafeCell;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use crate::asymmetric;
use crate::sync::{AtomicBool, AtomicUsize, Ordering, TAKEOVERS, sleep, spin_loop, this_thread, yield_now};

/// Looks before the processor is given to another thread, which may be the one that holds the lock.
const SPINS: u32 = 64;
/// Looks before it sleeps between them.
const WAKEFUL: u32 = SPINS + 32;
/// How long a nap is meant to be; the lock may be held over a call of the driver, which takes a few microseconds and rarely longer.
const NAP: Duration = Duration::from_micros(20);
/// The owner of a latch that belongs to nobody.
const NOBODY: usize = 0;

/// Latches that another thread took over, in this process.
static TAKEN_OVER: AtomicU32 = AtomicU32::new(0);

/// A value behind a lock that is rarely wanted by two.
///
/// ```
/// use kiln_driver::Latch;
///
/// let latch = Latch::new(1);
/// let mut guard = latch.lock();
/// assert!(latch.try_lock().is_none());
/// *guard += 1;
/// drop(guard);
/// assert_eq!(*latch.lock(), 2);
/// ```
// What is looked at first stands first, so that a small value shares its cache line.
#[repr(C)]
pub struct Latch<T> {
    /// The thread it belongs to. Once nobody, always nobody.
    owner: AtomicUsize,
    /// The owner holds it. Written by the owner alone.
    inside: AtomicBool,
    /// Another thread holds it or is about to.
    held: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached only through a guard, of which there is at most one, as the invariant says; a store with release ends each
// and a load with acquire begins the next, so that one holder's writes are seen by the other.
unsafe impl<T: Send> Sync for Latch<T> {}

impl<T> Latch<T> {
    /// A value that nobody holds, and that belongs to this thread until another wants it.
    pub fn new(value: T) -> Self {
        let owner = if TAKEN_OVER.load(Ordering::Relaxed) < TAKEOVERS { this_thread() } else { NOBODY };
        Self::owned_by(owner, value)
    }

    fn owned_by(owner: usize, value: T) -> Self {
        Self {
            owner: AtomicUsize::new(if asymmetric::is_offered() { owner } else { NOBODY }),
            inside: AtomicBool::new(false),
            held: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// The value, if nobody holds it.
    #[inline(always)]
    pub fn try_lock(&self) -> Option<LatchGuard<'_, T>> {
        if self.owner.load(Ordering::Relaxed) == this_thread() {
            if self.inside.load(Ordering::Acquire) {
                return None;
            }
            self.inside.store(true, Ordering::Relaxed);
            asymmetric::light();
            if self.owner.load(Ordering::Acquire) != NOBODY {
                return Some(LatchGuard { latch: self, lock: &self.inside });
            }
            self.inside.store(false, Ordering::Release);
        }
        self.try_lock_shared()
    }

    /// The value, as soon as nobody else holds it.
    #[inline(always)]
    pub fn lock(&self) -> LatchGuard<'_, T> {
        match self.try_lock() {
            Some(guard) => guard,
            None => self.lock_slowly(),
        }
    }

    /// The value, which nobody else can reach.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// The way of threads that are not the owner.
    #[inline]
    fn try_lock_shared(&self) -> Option<LatchGuard<'_, T>> {
        if self.held.swap(true, Ordering::Acquire) {
            return None;
        }
        if self.owner.load(Ordering::Relaxed) != NOBODY {
            self.take_over();
        }
        // A guard is made by whoever has the lock and nobody else: dropping one lets it go.
        if self.inside.load(Ordering::Acquire) {
            self.held.store(false, Ordering::Release);
            return None;
        }
        Some(LatchGuard { latch: self, lock: &self.held })
    }

    /// Ends the ownership. The owner may still be inside, but does not get in again.
    #[cold]
    fn take_over(&self) {
        self.owner.store(NOBODY, Ordering::Relaxed);
        asymmetric::heavy();
        TAKEN_OVER.fetch_add(1, Ordering::Relaxed);
    }

    #[cold]
    fn lock_slowly(&self) -> LatchGuard<'_, T> {
        let mut looks = 0_u32;
        loop {
            match looks {
                0..SPINS => spin_loop(),
                SPINS..WAKEFUL => yield_now(),
                _ => sleep(NAP),
            }
            looks = looks.saturating_add(1);
            let busy = self.held.load(Ordering::Relaxed) || self.inside.load(Ordering::Relaxed);
            if !busy && let Some(guard) = self.try_lock() {
                return guard;
            }
        }
    }
}

impl<T> fmt::Debug for Latch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("latch")
    }
}

/// The right to a latched value until it is dropped.
pub struct LatchGuard<'a, T> {
    latch: &'a Latch<T>,
    /// What says that it is held: `inside` or `held` of the latch.
    lock: &'a AtomicBool,
}

// SAFETY: a guard gives access to the value as a reference does. Whichever thread drops it clears the flag that its making set, and the
// owner looks at `inside` before it sets it, so a guard that is with another thread keeps even the owner out.
unsafe impl<T: Send> Send for LatchGuard<'_, T> {}
// SAFETY: shared, a guard gives out shared references to the value.
unsafe impl<T: Sync> Sync for LatchGuard<'_, T> {}

impl<T> Deref for LatchGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this guard is the only one, as said at `Sync`.
        unsafe { &*self.latch.value.get() }
    }
}

impl<T> DerefMut for LatchGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and `&mut self` makes the reference the only one.
        unsafe { &mut *self.latch.value.get() }
    }
}

impl<T> Drop for LatchGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_value_is_not_given_out_again() {
        let latch = Latch::new(1);
        let mut guard = latch.lock();
        assert!(latch.try_lock().is_none());
        assert!(latch.try_lock().is_none(), "asking in vain does not let go of it");
        *guard += 1;
        drop(guard);
        assert_eq!(*latch.try_lock().unwrap(), 2);
    }

    /// Many latches, each made by one thread that goes on using it while others come: the moment of taking over is what is tried.
    #[test]
    fn an_owner_and_those_who_take_over_are_never_inside_together() {
        let rounds = if cfg!(miri) { 5 } else { 500 };
        for _ in 0..rounds {
            let latch = Latch::owned_by(this_thread(), (0_u64, 0_u64));
            let count = |times: u64| {
                for _ in 0..times {
                    let mut pair = latch.lock();
                    pair.0 += 1;
                    std::hint::black_box(&mut *pair);
                    pair.1 += 1;
                    assert_eq!(pair.0, pair.1);
                }
            };
            std::thread::scope(|scope| {
                scope.spawn(|| count(100));
                count(300);
            });
            assert_eq!(*latch.lock(), (400, 400));
        }
    }

    #[test]
    fn a_guard_that_wanders_keeps_its_owner_out() {
        let latch = Latch::owned_by(this_thread(), 0);
        let guard = latch.lock();
        std::thread::scope(|scope| {
            let wandering = scope.spawn(move || {
                yield_now();
                let mut guard = guard;
                *guard += 1;
            });
            assert!(latch.try_lock().is_none_or(|value| *value == 1));
            wandering.join().unwrap();
        });
        assert_eq!(*latch.lock(), 1);
    }

    #[test]
    fn threads_that_count_lose_nothing() {
        let (threads, rounds) = if cfg!(miri) { (2, 50) } else { (4, 20_000) };
        let latch = Latch::new(0_u64);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| (0..rounds).for_each(|_| *latch.lock() += 1));
            }
        });
        assert_eq!(*latch.lock(), threads * rounds);
    }
}
