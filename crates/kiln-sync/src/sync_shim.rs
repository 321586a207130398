//! The atomics, locks and pauses of all crates; in its builds, a model checker's replace them.
//!
//! A normal build has the standard library's here. A build with `--cfg kiln_loom` has loom's, which explores every interleaving
//! of a few threads with weak memory; one with `--cfg kiln_shuttle` has shuttle's, which samples interleavings of whole programs.
//! It is a `cfg` and not a feature, because features are united over a workspace: one crate that asked for a checker would change the
//! locks of all others.

#[cfg(not(any(kiln_loom, kiln_shuttle)))]
pub use self::plain::*;

#[cfg(kiln_loom)]
pub use self::loomed::*;

#[cfg(kiln_shuttle)]
pub use self::shuttled::*;

#[cfg(not(any(kiln_loom, kiln_shuttle)))]
mod plain {
    pub use std::hint::spin_loop;
    pub use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
    pub use std::sync::{Mutex, RwLock};
    pub use std::thread::{sleep, yield_now};
    pub use std::thread_local;

    pub(crate) use crate::asymmetric_fence::{heavy, is_light_cheap, light, try_light};
    pub(crate) use crate::thread_number::{known_thread, this_thread};
}

#[cfg(kiln_loom)]
mod loomed {
    pub use std::thread_local;
    use std::time::Duration;

    pub use loom::hint::spin_loop;
    pub use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
    pub use loom::sync::{Mutex, RwLock};
    pub use loom::thread::yield_now;

    /// Time does not pass in a model.
    pub fn sleep(_: Duration) {
        yield_now();
    }

    std::thread_local! {
        static FENCES: std::cell::Cell<bool> = const { std::cell::Cell::new(true) };
    }

    /// Takes the fences out of the models that this thread runs, or puts them back: a checker that does not notice proves nothing.
    pub fn set_fences(on: bool) {
        FENCES.set(on);
    }

    pub(crate) fn is_light_cheap() -> bool {
        true
    }

    pub(crate) fn light() {
        if FENCES.get() {
            loom::sync::atomic::fence(Ordering::SeqCst);
        }
    }

    pub(crate) fn heavy() {
        light();
    }

    pub(crate) fn try_light() -> bool {
        light();
        true
    }

    pub(crate) fn this_thread() -> u32 {
        super::number_of(&loom::thread::current().id())
    }

    pub(crate) fn known_thread() -> u32 {
        this_thread()
    }
}

#[cfg(kiln_shuttle)]
mod shuttled {
    use std::time::Duration;

    pub use shuttle::hint::spin_loop;
    pub use shuttle::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
    pub use shuttle::sync::{Mutex, RwLock};
    pub use shuttle::thread::yield_now;
    pub use shuttle::thread_local;

    /// Time does not pass in a model.
    pub fn sleep(_: Duration) {
        yield_now();
    }

    pub(crate) fn is_light_cheap() -> bool {
        true
    }

    // Every atomic is sequentially consistent in this checker, so that there is nothing to fence.
    pub(crate) fn light() {}

    pub(crate) fn heavy() {}

    pub(crate) fn try_light() -> bool {
        true
    }

    pub(crate) fn this_thread() -> u32 {
        super::number_of(&shuttle::thread::current().id())
    }

    pub(crate) fn known_thread() -> u32 {
        this_thread()
    }
}

/// A number other than 0 for a thread of a model; the threads of a model are few, so that their hashes differ.
#[cfg(any(kiln_loom, kiln_shuttle))]
fn number_of(id: &impl std::hash::Hash) -> u32 {
    use std::hash::{DefaultHasher, Hasher};

    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish() as u32 | 1
}

/// A cell whose contents are reached through a closure, so that a checker sees each access.
pub(crate) struct Cell<T> {
    #[cfg(not(kiln_loom))]
    inner: std::cell::UnsafeCell<T>,
    #[cfg(kiln_loom)]
    inner: loom::cell::UnsafeCell<T>,
}

#[cfg(not(kiln_loom))]
impl<T> Cell<T> {
    #[inline(always)]
    pub(crate) fn new(value: T) -> Self {
        Self { inner: std::cell::UnsafeCell::new(value) }
    }

    #[inline(always)]
    pub(crate) fn with_mut<R>(&self, run: impl FnOnce(*mut T) -> R) -> R {
        run(self.inner.get())
    }

    #[inline(always)]
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.inner.get_mut()
    }
}

#[cfg(kiln_loom)]
impl<T> Cell<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { inner: loom::cell::UnsafeCell::new(value) }
    }

    pub(crate) fn with_mut<R>(&self, run: impl FnOnce(*mut T) -> R) -> R {
        self.inner.with_mut(run)
    }

    pub(crate) fn get_mut(&mut self) -> &mut T {
        // SAFETY: the exclusive borrow of the cell is the only way to its contents while the reference lives.
        self.inner.with_mut(|value| unsafe { &mut *value })
    }
}
