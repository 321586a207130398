//! A lock for moments.
//!
//! A block is locked for a few integer operations and never over a call that could block, so a thread that finds it held spins. Unlike
//! a mutex of the standard library, letting go is a plain store: a launch locks each of its blocks, and this halves what that costs.

use std::cell::UnsafeCell;
use std::fmt;
use std::ops::{Deref, DerefMut};

use super::sync::{AtomicBool, Ordering, spin_loop, yield_now};

/// Looks before the processor is given to another thread, which may be the one that holds the lock.
const SPINS: u32 = 64;

/// A value behind a lock that is held for moments.
pub struct Latch<T> {
    held: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached only through a guard, of which there is at most one: `held` is set by the thread that makes it and cleared
// when it is dropped, with acquire and release so that one holder's writes are seen by the next.
unsafe impl<T: Send> Sync for Latch<T> {}

impl<T> Latch<T> {
    /// A value that nobody holds.
    pub fn new(value: T) -> Self {
        Self { held: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// The value, if nobody holds it.
    #[inline]
    pub fn try_lock(&self) -> Option<LatchGuard<'_, T>> {
        // A guard is made by whoever has the lock and nobody else: dropping one lets it go.
        if self.held.swap(true, Ordering::Acquire) { None } else { Some(LatchGuard { latch: self }) }
    }

    /// The value, as soon as nobody else holds it.
    #[inline]
    pub fn lock(&self) -> LatchGuard<'_, T> {
        loop {
            if let Some(guard) = self.try_lock() {
                return guard;
            }
            self.spin();
        }
    }

    /// The value, which nobody else can reach.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    #[cold]
    fn spin(&self) {
        let mut spins = 0;
        while self.held.load(Ordering::Relaxed) {
            spins += 1;
            if spins < SPINS { spin_loop() } else { yield_now() }
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
}

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
        self.latch.held.store(false, Ordering::Release);
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
