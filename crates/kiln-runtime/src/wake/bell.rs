//! A bell that wakes the reactor, and counts also if it rang before the reactor waited.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// A bell.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    rung: Mutex<bool>,
    heard: Condvar,
}

impl Bell {
    pub(crate) fn ring(&self) {
        let mut rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        if !*rung {
            *rung = true;
            self.heard.notify_all();
        }
    }

    /// Waits until the bell rings or time is over.
    pub(crate) fn listen(&self, limit: Option<Duration>) {
        let mut rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        match limit {
            None => {
                while !*rung {
                    rung = self.heard.wait(rung).unwrap_or_else(PoisonError::into_inner);
                }
            }
            // An early end is one look too many and no harm.
            Some(limit) if !*rung => {
                rung = self.heard.wait_timeout(rung, limit).unwrap_or_else(PoisonError::into_inner).0;
            }
            Some(_) => {}
        }
        *rung = false;
    }
}
