//! How often a worker may be replaced, as arithmetic on times.
//!
//! A device that fails again and again is not mended by starting it faster. Each replacement within the span makes the
//! next one wait longer, and when there were too many the device is given up.

use std::collections::VecDeque;
use std::time::Duration;

/// How often, and how fast, workers are replaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RestartPolicy {
    /// So many replacements.
    pub limit: u32,
    /// Within this span.
    pub span: Duration,
    /// What the second replacement within the span waits; the first waits for nothing, and each later one twice as long.
    pub pause: Duration,
    /// No wait is longer.
    pub longest_pause: Duration,
}

impl Default for RestartPolicy {
    /// Sixteen in ten minutes.
    fn default() -> Self {
        Self {
            limit: 16,
            span: Duration::from_secs(600),
            pause: Duration::from_millis(10),
            longest_pause: Duration::from_secs(10),
        }
    }
}

/// The replacements there were.
#[derive(Debug, Default)]
pub(crate) struct Restarts {
    times: VecDeque<Duration>,
}

impl Restarts {
    /// Notes a replacement at a time and says how long it has to wait; none when there were too many.
    pub(crate) fn admit(&mut self, policy: &RestartPolicy, now: Duration) -> Option<Duration> {
        while self.times.front().is_some_and(|time| now.saturating_sub(*time) > policy.span) {
            self.times.pop_front();
        }
        let recent = u32::try_from(self.times.len()).unwrap_or(u32::MAX);
        if recent >= policy.limit {
            return None;
        }
        self.times.push_back(now);
        let Some(doublings) = recent.checked_sub(1) else { return Some(Duration::ZERO) };
        Some(policy.pause.saturating_mul(1 << doublings.min(20)).min(policy.longest_pause))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: RestartPolicy = RestartPolicy {
        limit: 5,
        span: Duration::from_secs(100),
        pause: Duration::from_secs(1),
        longest_pause: Duration::from_secs(3),
    };

    #[test]
    fn pauses_grow_to_their_limit_and_too_many_are_refused() {
        let mut restarts = Restarts::default();
        let mut at =
            |second| restarts.admit(&POLICY, Duration::from_secs(second)).map(|pause| pause.as_secs());
        assert_eq!([0, 1, 2, 3, 4].map(&mut at), [Some(0), Some(1), Some(2), Some(3), Some(3)]);
        assert_eq!([5, 90, 100].map(&mut at), [None; 3]);
        // The first two have left the span.
        assert_eq!([102, 102, 102].map(&mut at), [Some(3), Some(3), None]);
        assert_eq!(at(1000), Some(0));
    }
}
