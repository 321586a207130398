//! An event count in shared memory: waits for a condition that the other process makes true, and wakes with a system call only if a thread
//! sleeps.
//!
//! It has two words: a number that changes with each notification, and the number of sleeping threads. A waiter adds itself, checks its
//! condition once more, and sleeps on the futex while the number is unchanged. A notifier makes its change before it reads the number of
//! sleepers. The full fences between make sure that at least one of the two sees the other.

use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::time::{Duration, Instant};

use rustix::thread::futex;

/// Two words that threads of one process sleep on and the other process notifies.
#[derive(Clone, Copy)]
pub(crate) struct EventCount<'a> {
    number: &'a AtomicU32,
    sleepers: &'a AtomicU32,
}

impl<'a> EventCount<'a> {
    pub(crate) fn new(number: &'a AtomicU32, sleepers: &'a AtomicU32) -> Self {
        Self { number, sleepers }
    }

    /// Wakes every sleeping thread. The change they wait for was made before this call.
    pub(crate) fn notify(self) {
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            self.notify_always();
        }
    }

    /// The same without reading the count of sleepers, which the other process may have overwritten.
    pub(crate) fn notify_always(self) {
        self.number.fetch_add(1, Ordering::SeqCst);
        // A wake cannot fail on a word that is mapped.
        let _ = futex::wake(self.number, futex::Flags::empty(), i32::MAX as u32);
    }

    /// Polls for a while, then sleeps until the condition is true or the limit is over. Returns whether it is true.
    pub(crate) fn wait_until(
        self,
        spin: Duration,
        limit: Option<Duration>,
        mut ready: impl FnMut() -> bool,
    ) -> bool {
        if ready() {
            return true;
        }
        let started = Instant::now();
        let spin = limit.map_or(spin, |limit| spin.min(limit));
        while started.elapsed() < spin {
            for _ in 0..32 {
                std::hint::spin_loop();
            }
            if ready() {
                return true;
            }
        }
        loop {
            let left = limit.map(|limit| limit.saturating_sub(started.elapsed()));
            if left == Some(Duration::ZERO) {
                return ready();
            }
            let number = self.number.load(Ordering::SeqCst);
            self.sleepers.fetch_add(1, Ordering::SeqCst);
            fence(Ordering::SeqCst);
            let done = ready();
            if !done {
                let left = left.map(timespec);
                // Woken, changed before the sleep, timed out or interrupted: the condition is checked again in each case.
                let _ = futex::wait(self.number, futex::Flags::empty(), number, left.as_ref());
            }
            self.sleepers.fetch_sub(1, Ordering::SeqCst);
            if done || ready() {
                return true;
            }
        }
    }
}

/// A duration as the system takes it. Durations beyond its range become the longest it has.
pub(crate) fn timespec(duration: Duration) -> futex::Timespec {
    futex::Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX / 2).min(i64::MAX / 2),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_notification_is_missed_and_a_limit_ends_a_wait() {
        const TURNS: u32 = 20_000;
        let words: [AtomicU32; 4] = [const { AtomicU32::new(0) }; 4];
        let (there, back) = (EventCount::new(&words[0], &words[1]), EventCount::new(&words[2], &words[3]));
        let ball = AtomicU32::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for turn in (1..TURNS).step_by(2) {
                    there.wait_until(Duration::ZERO, None, || ball.load(Ordering::Acquire) == turn);
                    ball.store(turn + 1, Ordering::Release);
                    back.notify();
                }
            });
            for turn in (0..TURNS).step_by(2) {
                back.wait_until(Duration::ZERO, None, || ball.load(Ordering::Acquire) == turn);
                ball.store(turn + 1, Ordering::Release);
                there.notify();
            }
            back.wait_until(Duration::ZERO, None, || ball.load(Ordering::Acquire) == TURNS);
        });
        assert!(!back.wait_until(Duration::ZERO, Some(Duration::from_millis(5)), || false));
        assert_eq!(words[3].load(Ordering::Relaxed), 0);
    }
}
