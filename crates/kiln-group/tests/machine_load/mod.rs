//! How busy a machine is, for tests that wait for no longer than a second.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long this machine keeps a thread from running that could: a thread sleeps for a moment over and over, and notes how much later it wakes.
pub(crate) struct Load {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Duration>,
}

impl Load {
    pub(crate) fn measure() -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let end = is_over.clone();
        let thread = std::thread::spawn(move || {
            let (moment, mut worst) = (Duration::from_millis(5), Duration::ZERO);
            while !end.load(Ordering::Relaxed) {
                let began = Instant::now();
                std::thread::sleep(moment);
                worst = worst.max(began.elapsed().saturating_sub(moment));
            }
            worst
        });
        Self { is_over, thread }
    }

    pub(crate) fn worst(self) -> Duration {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}
