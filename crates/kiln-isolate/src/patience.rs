//! A pause that ends early when there is nothing to wait for any more.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Whether another worker is still wanted.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    is_over: Mutex<bool>,
    ended: Condvar,
}

impl Patience {
    /// Pauses for so long; false if patience is at an end, by now or already.
    pub(crate) fn pause(&self, time: Duration) -> bool {
        let waited = self.ended.wait_timeout_while(self.is_over(), time, |is_over| !*is_over);
        let (is_over, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !*is_over
    }

    /// Whether there is nothing to wait for any more.
    pub(crate) fn is_at_end(&self) -> bool {
        *self.is_over()
    }

    /// Ends every pause, now and from here on.
    pub(crate) fn end(&self) {
        *self.is_over() = true;
        self.ended.notify_all();
    }

    fn is_over(&self) -> MutexGuard<'_, bool> {
        self.is_over.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
