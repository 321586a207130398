//! A lock that costs its owner next to nothing.
//!
//! A thread's cache is used by that thread a million times a second and by others only when memory is short. The
//! owner says that it is inside with a plain store and looks whether a visitor wants in; a visitor says that it wants
//! in and waits until the owner is out. One of the two sees the other, because between its store and its load each
//! side has a fence (see [`barrier`](super::barrier), which makes the owner's free). An owner that sees a visitor
//! steps back; it does without, or queues with the visitors on an ordinary mutex.
//!
//! Invariant: the value is touched only by the owner between `inside = true`, having read `wanted == false` after the
//! fence, and `inside = false`; or by whoever holds `visitors`, having set `wanted` and then, after the fence, read
//! `inside == false`. The owner in its slow path is one of the latter.

use super::barrier;
use super::sync::{AtomicBool, Mutex, Ordering, PoisonError, UnsafeCell, spin_loop};

/// A value with one owner thread that gets at it cheaply, and visitors that do not.
pub(crate) struct Biased<T> {
    inside: AtomicBool,
    wanted: AtomicBool,
    visitors: Mutex<()>,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached by one thread at a time, as the invariant above says, and the stores that end a turn
// are releases that the loads that begin the next one acquire; so sharing the lock moves the value between threads and
// never shares it.
unsafe impl<T: Send> Sync for Biased<T> {}
// SAFETY: moving the lock moves the value.
unsafe impl<T: Send> Send for Biased<T> {}

/// The owner's turn; it ends when this is dropped.
pub(crate) struct OwnerTurn<'a, T> {
    lock: &'a Biased<T>,
}

/// Ends a visitor's turn, also when the closure panics.
struct VisitorTurn<'a>(&'a AtomicBool);

impl<T> Biased<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            inside: AtomicBool::new(false),
            wanted: AtomicBool::new(false),
            visitors: Mutex::new(()),
            value: UnsafeCell::new(value),
        }
    }

    /// The value, for its owner; none if a visitor is there or wants in.
    ///
    /// # Safety
    /// At most one thread at a time is the owner; when the owner changes, the last turn of the old one happens before
    /// the first of the new one; and the owner has one turn at a time, of this call or of
    /// [`with_owner`](Self::with_owner).
    #[inline]
    pub(crate) unsafe fn enter(&self) -> Option<OwnerTurn<'_, T>> {
        self.inside.store(true, Ordering::Relaxed);
        barrier::light();
        // Made before the look at `wanted`, so that stepping back is dropping it.
        let turn = OwnerTurn { lock: self };
        if self.wanted.load(Ordering::Acquire) { None } else { Some(turn) }
    }

    /// Runs a closure on the value, as its owner, behind the visitors if there are some.
    ///
    /// # Safety
    /// As for [`enter`](Self::enter).
    pub(crate) unsafe fn with_owner<R>(&self, run: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: the caller promises what `enter` asks for.
        if let Some(mut turn) = unsafe { self.enter() } {
            return turn.with(run);
        }
        let _queue = self.visitors.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: visitors touch the value only while they hold the mutex, which is held here, and the only owner is
        // this thread, whose turn of the fast path is over.
        self.value.with_mut(|value| run(unsafe { &mut *value }))
    }

    /// Runs a closure on the value, from any thread but inside of neither closure. None, and the closure is not run, if
    /// the system failed to fence.
    pub(crate) fn with_visitor<R>(&self, run: impl FnOnce(&mut T) -> R) -> Option<R> {
        let _queue = self.visitors.lock().unwrap_or_else(PoisonError::into_inner);
        self.wanted.store(true, Ordering::Relaxed);
        let _turn = VisitorTurn(&self.wanted);
        if !barrier::heavy() {
            return None;
        }
        while self.inside.load(Ordering::Acquire) {
            spin_loop();
        }
        // SAFETY: `wanted` was set before `inside` was read as false, with a fence between, so an owner that comes now
        // sees `wanted` and steps back to the mutex, which is held here; the acquire load saw the release store that
        // ended the owner's last turn.
        Some(self.value.with_mut(|value| run(unsafe { &mut *value })))
    }
}

impl<T> OwnerTurn<'_, T> {
    /// Runs a closure on the value.
    #[inline]
    pub(crate) fn with<R>(&mut self, run: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: `inside` was set before `wanted` was read as false, with a fence between. A visitor sets `wanted`,
        // fences, and then waits for `inside` to be false: either it has not read it yet, and will wait for this turn to
        // end, or it read it before our store, and then its store of `wanted` came before our load, which would have
        // seen it. There is no other turn of an owner, as the caller of `enter` promised.
        self.lock.value.with_mut(|value| run(unsafe { &mut *value }))
    }
}

impl<T> Drop for OwnerTurn<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.inside.store(false, Ordering::Release);
    }
}

impl Drop for VisitorTurn<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl<T> std::fmt::Debug for Biased<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Biased")
    }
}
