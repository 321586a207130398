//! Waking somebody in the other process, with a system call only if somebody sleeps.
//!
//! A bell is two words of shared memory: a number that changes at each ring, and how many sleep on it. A sleeper adds
//! itself, looks once more whether there is something to do, and sleeps while the number is what it was. A ringer
//! has made its change before it looks for sleepers. The full fences between make sure that at least one of the two
//! sees the other.

use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::time::{Duration, Instant};

use rustix::thread::futex;

/// Two words that a process sleeps on and another rings.
#[derive(Clone, Copy)]
pub(crate) struct Bell<'a> {
    number: &'a AtomicU32,
    sleepers: &'a AtomicU32,
}

impl<'a> Bell<'a> {
    pub(crate) fn new(number: &'a AtomicU32, sleepers: &'a AtomicU32) -> Self {
        Self { number, sleepers }
    }

    /// Wakes everybody who sleeps. The change they sleep for was made before this call.
    pub(crate) fn ring(self) {
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            self.ring_anyway();
        }
    }

    /// The same for one who does not trust the count.
    pub(crate) fn ring_anyway(self) {
        self.number.fetch_add(1, Ordering::SeqCst);
        // A wake cannot fail on a word that is mapped.
        let _ = futex::wake(self.number, futex::Flags::empty(), i32::MAX as u32);
    }

    /// Spins for a while, then sleeps until something is ready, or the time is over. Says whether it is ready.
    pub(crate) fn sleep_until(
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
                // Woken, changed before we slept, timed out or interrupted: in each case we look again.
                let _ = futex::wait(self.number, futex::Flags::empty(), number, left.as_ref());
            }
            self.sleepers.fetch_sub(1, Ordering::SeqCst);
            if done || ready() {
                return true;
            }
        }
    }
}

/// A duration as the system takes it; longer ones than it can say are as good as for ever.
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
    fn no_ring_is_missed_and_a_limit_ends_a_sleep() {
        const TURNS: u32 = 20_000;
        let words: [AtomicU32; 4] = [const { AtomicU32::new(0) }; 4];
        let (there, back) = (Bell::new(&words[0], &words[1]), Bell::new(&words[2], &words[3]));
        let ball = AtomicU32::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for turn in (1..TURNS).step_by(2) {
                    there.sleep_until(Duration::ZERO, None, || ball.load(Ordering::Acquire) == turn);
                    ball.store(turn + 1, Ordering::Release);
                    back.ring();
                }
            });
            for turn in (0..TURNS).step_by(2) {
                back.sleep_until(Duration::ZERO, None, || ball.load(Ordering::Acquire) == turn);
                ball.store(turn + 1, Ordering::Release);
                there.ring();
            }
            back.sleep_until(Duration::ZERO, None, || ball.load(Ordering::Acquire) == TURNS);
        });
        assert!(!back.sleep_until(Duration::ZERO, Some(Duration::from_millis(5)), || false));
        assert_eq!(words[3].load(Ordering::Relaxed), 0);
    }
}
