//! A lock that costs its owner next to nothing.
//!
//! A thread's cache is used by that thread a million times a second and by others only when memory is short; a stream's
//! memory is mostly used by one thread. An ordinary lock is two locked instructions a turn, which is a quarter of what
//! an allocation costs. Here the owner says that it is inside with a plain store and looks whether a visitor wants in; a
//! visitor says that it wants in and waits until the owner is out. One of the two sees the other, because between its
//! store and its load each side has a fence (see [`barrier`](super::barrier), which makes the owner's free). An owner
//! that sees a visitor steps back; it does without, or queues with the visitors on an ordinary mutex.
//!
//! A visit costs microseconds. A lock with many visitors therefore becomes an ordinary one for good: `wanted` stays set,
//! so the owner always queues, and visitors, once the owner was seen outside, need not look for it again.
//!
//! Invariant: the value is touched only by the owner between `inside = true`, having read `wanted == false` after the
//! fence, and `inside = false`; or by whoever holds `visitors`, having set `wanted` (or found it set for good) and then,
//! after the fence, read `inside == false`. The owner in its slow path is one of the latter.

use super::barrier;
use super::sync::{AtomicBool, Mutex, MutexGuard, Ordering, PoisonError, UnsafeCell, pause};

/// A value with one owner thread that gets at it cheaply, and visitors that do not.
pub(crate) struct Biased<T> {
    inside: AtomicBool,
    wanted: AtomicBool,
    visitors: Mutex<Visitors>,
    value: UnsafeCell<T>,
}

/// How many visits there were, until there were too many.
#[derive(Debug)]
struct Visitors {
    patience: u32,
}

// SAFETY: the value is reached by one thread at a time, as the invariant above says, and the stores that end a turn
// are releases that the loads that begin the next one acquire; so sharing the lock moves the value between threads and
// never shares it.
unsafe impl<T: Send> Sync for Biased<T> {}
// SAFETY: moving the lock moves the value.
unsafe impl<T: Send> Send for Biased<T> {}

/// A turn at the value; it ends when this is dropped.
pub(crate) struct Turn<'a, T> {
    lock: &'a Biased<T>,
    /// The mutex, in a turn that is not the owner's quick one.
    queue: Option<MutexGuard<'a, Visitors>>,
}

impl<T> Biased<T> {
    /// A lock that bears so many counted visits before it becomes an ordinary one; `u32::MAX` never does.
    pub(crate) fn new(value: T, patience: u32) -> Self {
        Self {
            inside: AtomicBool::new(false),
            wanted: AtomicBool::new(false),
            visitors: Mutex::new(Visitors { patience }),
            value: UnsafeCell::new(value),
        }
    }

    /// A turn for the owner; none if a visitor is there or wants in, or the owner has a turn already.
    ///
    /// # Safety
    /// At most one thread at a time is the owner, and when the owner changes, the last turn of the old one happens
    /// before the first of the new one.
    #[inline]
    pub(crate) unsafe fn enter(&self) -> Option<Turn<'_, T>> {
        if self.inside.load(Ordering::Relaxed) {
            return None;
        }
        self.inside.store(true, Ordering::Relaxed);
        barrier::light();
        if self.wanted.load(Ordering::Acquire) {
            self.inside.store(false, Ordering::Release);
            return None;
        }
        Some(Turn { lock: self, queue: None })
    }

    /// A turn for the owner, behind the visitors if there are some. A second turn inside of a first one waits for ever,
    /// as with any lock.
    ///
    /// # Safety
    /// As for [`enter`](Self::enter).
    #[inline]
    pub(crate) unsafe fn lock_owner(&self) -> Turn<'_, T> {
        // SAFETY: the caller promises what `enter` asks for.
        match unsafe { self.enter() } {
            Some(turn) => turn,
            None => self.queue_as_owner(),
        }
    }

    /// A turn for any thread.
    pub(crate) fn lock(&self) -> Turn<'_, T> {
        self.queue_as_visitor(true)
    }

    /// The same for a rare visit, which does not count against the lock.
    pub(crate) fn visit(&self) -> Turn<'_, T> {
        self.queue_as_visitor(false)
    }

    #[cold]
    fn queue_as_owner(&self) -> Turn<'_, T> {
        // Only this thread sets `inside`, so if it is set the turn is an outer one of its own.
        while self.inside.load(Ordering::Relaxed) {
            pause();
        }
        let queue = self.visitors.lock().unwrap_or_else(PoisonError::into_inner);
        Turn { lock: self, queue: Some(queue) }
    }

    #[cold]
    fn queue_as_visitor(&self, counted: bool) -> Turn<'_, T> {
        let mut queue = self.visitors.lock().unwrap_or_else(PoisonError::into_inner);
        if queue.patience > 0 {
            self.wanted.store(true, Ordering::Relaxed);
            barrier::heavy();
            while self.inside.load(Ordering::Acquire) {
                pause();
            }
            if counted && queue.patience < u32::MAX {
                queue.patience -= 1;
            }
        }
        Turn { lock: self, queue: Some(queue) }
    }
}

impl<T> Turn<'_, T> {
    /// Runs a closure on the value.
    #[inline]
    pub(crate) fn with<R>(&mut self, run: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: this turn is the only one, as the invariant of the file says. An owner's quick turn set `inside` before
        // it read `wanted` as false, with a fence between; a visitor sets `wanted`, fences, and then waits for `inside`
        // to be false: either it has not read it yet and will wait for this turn to end, or it read it before our store,
        // and then its store of `wanted` came before our load, which would have seen it. Every other turn holds the
        // mutex and either saw the owner outside with `wanted` set, or is the owner's.
        self.lock.value.with_mut(|value| run(unsafe { &mut *value }))
    }
}

impl<T> std::ops::Deref for Turn<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: as for `with`; the turn lasts as long as the reference.
        self.lock.value.with_mut(|value| unsafe { &*value })
    }
}

impl<T> std::ops::DerefMut for Turn<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as for `with`; the turn lasts as long as the reference.
        self.lock.value.with_mut(|value| unsafe { &mut *value })
    }
}

impl<T> Drop for Turn<'_, T> {
    #[inline]
    fn drop(&mut self) {
        match &self.queue {
            None => self.lock.inside.store(false, Ordering::Release),
            // Nobody wants in any more, unless too many did. The mutex is let go after this.
            Some(queue) if queue.patience > 0 => self.lock.wanted.store(false, Ordering::Release),
            Some(_) => {}
        }
    }
}

impl<T> std::fmt::Debug for Biased<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Biased")
    }
}
