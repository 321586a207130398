//! How a host waits: it polls, first without a pause, then with pauses.
//!
//! The driver's own blocking calls cannot end by a deadline, and one that waits for a hung kernel never ends. Asking
//! costs about 300 ns and is serialised between all threads of the process, so only short waits are worth asking
//! without a pause; a longer wait sleeps a small part of the time it has waited already, which bounds what the
//! pauses add to it.
//!
//! The shortest sleep there is lasts some 75 us whatever was asked for, because Linux lets a timer be 50 us late. Slept after 50 us of
//! waiting it would double the wait for work of 60, so up to a millisecond the processor is only offered to others between two questions.

use std::time::Duration;

use kiln_driver::{Clock, Result, Timeout, Waited};

/// How long to poll without yielding the processor.
const SPIN: Duration = Duration::from_micros(50);
/// How long to poll without sleeping.
const WAKEFUL: Duration = Duration::from_millis(1);
/// Spin-loop hints between two polls.
const SPIN_PAUSES: u32 = 32;
/// Shorter sleeps are rounded up by the system.
const SHORTEST_SLEEP: Duration = Duration::from_micros(20);
/// Longer sleeps would delay the caller noticeably.
const LONGEST_SLEEP: Duration = Duration::from_millis(1);
/// A sleep is this fraction of the time waited so far.
const SLEEP_PART: u32 = 64;

/// Polls until the condition is true, the time is over, or polling fails.
pub(crate) fn wait_until(
    clock: &dyn Clock,
    timeout: Timeout,
    mut is_done: impl FnMut() -> Result<bool>,
) -> Result<Waited> {
    let limit = match timeout {
        Timeout::Poll => Some(Duration::ZERO),
        Timeout::After(limit) => Some(limit),
        Timeout::Never => None,
    };
    let started = clock.now();
    loop {
        if is_done()? {
            return Ok(Waited::Done);
        }
        let elapsed = clock.now().saturating_sub(started);
        let left = limit.map(|limit| limit.saturating_sub(elapsed));
        if left == Some(Duration::ZERO) {
            return Ok(Waited::TimedOut);
        }
        match sleep_after(elapsed) {
            Some(sleep) => clock.sleep(left.map_or(sleep, |left| sleep.min(left))),
            None => {
                if elapsed >= SPIN {
                    std::thread::yield_now();
                }
                (0..SPIN_PAUSES).for_each(|_| std::hint::spin_loop());
            }
        }
    }
}

/// How long to sleep when that much was waited already; not at all in the beginning.
fn sleep_after(elapsed: Duration) -> Option<Duration> {
    (elapsed >= WAKEFUL).then(|| (elapsed / SLEEP_PART).clamp(SHORTEST_SLEEP, LONGEST_SLEEP))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiln_driver::{Code, Error, Refusal};
    use std::sync::Mutex;

    /// Each look at it costs a microsecond, so that spinning ends.
    #[derive(Default)]
    struct Steps {
        now: Mutex<Duration>,
        slept: Mutex<Vec<Duration>>,
        /// How much longer a sleep lasts than was asked for.
        slack: Duration,
    }

    impl Clock for Steps {
        fn now(&self) -> Duration {
            let mut now = self.now.lock().unwrap();
            *now += Duration::from_micros(1);
            *now
        }

        fn sleep(&self, duration: Duration) {
            *self.now.lock().unwrap() += duration + self.slack;
            self.slept.lock().unwrap().push(duration);
        }
    }

    #[test]
    fn polling_asks_once() {
        let (clock, mut asked) = (Steps::default(), 0);
        let waited = wait_until(&clock, Timeout::Poll, || {
            asked += 1;
            Ok(false)
        });
        assert_eq!((waited.unwrap(), asked), (Waited::TimedOut, 1));
        assert_eq!(wait_until(&clock, Timeout::Poll, || Ok(true)).unwrap(), Waited::Done);
        assert!(clock.slept.lock().unwrap().is_empty());
    }

    #[test]
    fn a_deadline_is_kept_and_sleeps_grow_to_their_limit() {
        let clock = Steps::default();
        let limit = Duration::from_millis(200);
        assert_eq!(wait_until(&clock, Timeout::After(limit), || Ok(false)).unwrap(), Waited::TimedOut);
        let slept = clock.slept.lock().unwrap();
        let growing = &slept[..slept.len() - 1];
        assert!(growing.windows(2).all(|pair| pair[0] <= pair[1]));
        assert_eq!((slept[0], *growing.last().unwrap()), (SHORTEST_SLEEP, LONGEST_SLEEP));
        let waited = *clock.now.lock().unwrap();
        assert!(waited >= limit && waited < limit + Duration::from_micros(10), "{waited:?}");
    }

    #[test]
    fn sleeps_that_last_too_long_add_little_to_a_wait_of_any_length() {
        for work in [20, 57, 129, 523, 956, 1_500, 10_000, 100_000].map(Duration::from_micros) {
            let clock = Steps { slack: Duration::from_micros(57), ..Steps::default() };
            let is_done = || Ok(*clock.now.lock().unwrap() >= work);
            assert_eq!(wait_until(&clock, Timeout::Never, is_done).unwrap(), Waited::Done);
            let waited = *clock.now.lock().unwrap();
            assert!(waited <= work + work / 12 + Duration::from_micros(1), "{work:?} became {waited:?}");
        }
    }

    #[test]
    fn a_failure_ends_a_wait_without_a_deadline() {
        let (clock, mut asked) = (Steps::default(), 0);
        let waited = wait_until(&clock, Timeout::Never, || {
            asked += 1;
            if asked < 500 { Ok(false) } else { Err(Error::refused("wait", Refusal::Driver(Code::UNKNOWN))) }
        });
        assert_eq!(waited.unwrap_err().code(), Some(Code::UNKNOWN));
    }

    #[test]
    fn the_longest_timeout_does_not_overflow() {
        let mut asked = 0;
        let waited = wait_until(&Steps::default(), Timeout::After(Duration::MAX), || {
            asked += 1;
            Ok(asked == 1000)
        });
        assert_eq!(waited.unwrap(), Waited::Done);
    }
}
