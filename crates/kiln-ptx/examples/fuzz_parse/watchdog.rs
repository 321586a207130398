//! A second thread that ends the process when a text takes too long or too much memory, since the reader may never return then.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::resources::memory;

/// Longer than this for one text of a few hundred kilobytes is a hang, on a machine that is busy with other things too.
const TIME_LIMIT: Duration = Duration::from_secs(120);
/// What the process may have at most while it works on a text.
pub(crate) const MEMORY_LIMIT_BYTES: u64 = 1 << 30;
/// How often it looks.
const INTERVAL: Duration = Duration::from_millis(20);

/// What is being worked on.
#[derive(Default)]
pub(crate) struct Watchdog {
    text: Mutex<Option<(u64, Instant)>>,
}

impl Watchdog {
    /// Starts to watch. `fail` ends the process; it gets the number of the text and what is wrong.
    pub(crate) fn start(fail: impl Fn(u64, &str) + Send + 'static) -> Arc<Self> {
        let watchdog = Arc::new(Self::default());
        let watched = Arc::clone(&watchdog);
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(INTERVAL);
                let current = *watched.text.lock().unwrap_or_else(PoisonError::into_inner);
                let Some((number, since)) = current else { continue };
                if since.elapsed() > TIME_LIMIT {
                    fail(number, &format!("is not done after {} s", TIME_LIMIT.as_secs()));
                }
                if memory() > MEMORY_LIMIT_BYTES {
                    fail(number, &format!("has more than {} MiB of memory", MEMORY_LIMIT_BYTES >> 20));
                }
            }
        });
        watchdog
    }

    /// A text begins.
    pub(crate) fn begin(&self, number: u64) {
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = Some((number, Instant::now()));
    }
}
