//! How often a worker may be replaced.
//!
//! A device that keeps failing is not helped by replacing its worker faster. Each replacement within a span of time makes the next one
//! wait longer, and after too many of them no more are made.

#[cfg(target_os = "linux")]
use std::collections::VecDeque;
use std::time::Duration;

/// How often, and how fast, a worker is replaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RestartPolicy {
    /// The most replacements within [`span`](Self::span).
    pub limit: u32,
    /// The span of time that [`limit`](Self::limit) refers to.
    pub span: Duration,
    /// How long the second replacement within the span waits. The first does not wait, and each later one waits twice as long as the one
    /// before.
    pub pause: Duration,
    /// The longest wait.
    pub longest_pause: Duration,
}

impl Default for RestartPolicy {
    /// Sixteen replacements in ten minutes.
    fn default() -> Self {
        Self {
            limit: 16,
            span: Duration::from_secs(600),
            pause: Duration::from_millis(10),
            longest_pause: Duration::from_secs(10),
        }
    }
}

/// When the worker was replaced.
#[cfg(target_os = "linux")]
#[derive(Debug, Default)]
pub(crate) struct Restarts {
    times: VecDeque<Duration>,
}

#[cfg(target_os = "linux")]
impl Restarts {
    /// Records a replacement at a time and returns how long it must wait; `None` if there were too many.
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

#[cfg(all(test, target_os = "linux"))]
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
