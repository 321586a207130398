//! The primitives [`Biased`](super::Biased) is made of; a model checker puts its own here.

pub(crate) use std::sync::atomic::{AtomicBool, Ordering};
pub(crate) use std::sync::{Mutex, MutexGuard, PoisonError};
pub(crate) use std::thread::yield_now as pause;

/// A cell whose contents are reached through a closure, so that a checker sees how long.
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    #[inline]
    pub(crate) fn with_mut<R>(&self, run: impl FnOnce(*mut T) -> R) -> R {
        run(self.0.get())
    }
}
