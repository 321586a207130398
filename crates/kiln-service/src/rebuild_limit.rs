//! How often a lost device is built again.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Restarts of a service whose device failed: after a pause that doubles each time, so many within a time, and then no more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Restart {
    /// Restarts within the time; 0 means never.
    pub limit: usize,
    /// The time.
    pub within: Duration,
    /// The pause before the first.
    pub pause: Duration,
    /// The longest pause.
    pub longest_pause: Duration,
}

impl Restart {
    /// Never: what is lost is lost.
    pub fn never() -> Self {
        Self { limit: 0, within: Duration::ZERO, pause: Duration::ZERO, longest_pause: Duration::ZERO }
    }

    /// So many times within a minute, after 10 ms, 20 ms, and so on to a second.
    pub fn times(limit: usize) -> Self {
        let (pause, longest_pause) = (Duration::from_millis(10), Duration::from_secs(1));
        Self { limit, within: Duration::from_secs(60), pause, longest_pause }
    }
}

/// The restarts so far.
#[derive(Debug)]
pub(crate) struct Restarts {
    rule: Restart,
    recent: VecDeque<Instant>,
}

impl Restarts {
    pub(crate) fn new(rule: Restart) -> Self {
        Self { rule, recent: VecDeque::new() }
    }

    /// The pause before the next restart; none if there may be no more.
    pub(crate) fn next(&mut self, now: Instant) -> Option<Duration> {
        while self.recent.front().is_some_and(|first| now.duration_since(*first) > self.rule.within) {
            self.recent.pop_front();
        }
        if self.recent.len() >= self.rule.limit {
            return None;
        }
        let doublings = u32::try_from(self.recent.len()).unwrap_or(u32::MAX).min(31);
        self.recent.push_back(now);
        Some(self.rule.pause.saturating_mul(1 << doublings).min(self.rule.longest_pause))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_to_their_limit_and_restarts_end_until_time_has_passed() {
        let mut restarts =
            Restarts::new(Restart { longest_pause: Duration::from_millis(35), ..Restart::times(4) });
        let start = Instant::now();
        let pauses: Vec<_> = (0..5).map(|_| restarts.next(start).map(|pause| pause.as_millis())).collect();
        assert_eq!(pauses, [Some(10), Some(20), Some(35), Some(35), None]);
        let later = start + Duration::from_secs(61);
        assert_eq!(restarts.next(later), Some(Duration::from_millis(10)));
        assert_eq!(Restarts::new(Restart::never()).next(start), None);
    }
}
