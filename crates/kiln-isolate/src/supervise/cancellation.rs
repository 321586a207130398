//! Cancels takeovers.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Whether takeovers were cancelled, and a pause that ends early when they are.
#[derive(Debug, Default)]
pub(crate) struct Cancellation {
    is_cancelled: Mutex<bool>,
    cancelled: Condvar,
}

impl Cancellation {
    /// Pauses for that long; returns false if takeovers are cancelled before or meanwhile.
    pub(crate) fn pause(&self, time: Duration) -> bool {
        let waited = self.cancelled.wait_timeout_while(self.lock(), time, |is_cancelled| !*is_cancelled);
        let (is_cancelled, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !*is_cancelled
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        *self.lock()
    }

    /// Cancels takeovers for good, and ends every pause.
    pub(crate) fn cancel(&self) {
        *self.lock() = true;
        self.cancelled.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.is_cancelled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
