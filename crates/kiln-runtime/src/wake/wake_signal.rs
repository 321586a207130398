//! A flag that wakes the reactor. A notification that comes before the wait ends that wait.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Wakes one waiting thread, now or when it next waits.
#[derive(Debug, Default)]
pub(crate) struct WakeSignal {
    notified: Mutex<bool>,
    changed: Condvar,
}

impl WakeSignal {
    pub(crate) fn notify(&self) {
        let mut notified = self.notified.lock().unwrap_or_else(PoisonError::into_inner);
        if !*notified {
            *notified = true;
            self.changed.notify_all();
        }
    }

    /// Waits for a notification, or until the time is over.
    pub(crate) fn wait(&self, limit: Option<Duration>) {
        let mut notified = self.notified.lock().unwrap_or_else(PoisonError::into_inner);
        match limit {
            None => {
                while !*notified {
                    notified = self.changed.wait(notified).unwrap_or_else(PoisonError::into_inner);
                }
            }
            // An early end is one look too many and no harm.
            Some(limit) if !*notified => {
                notified =
                    self.changed.wait_timeout(notified, limit).unwrap_or_else(PoisonError::into_inner).0;
            }
            Some(_) => {}
        }
        *notified = false;
    }
}
