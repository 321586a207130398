//! Time as far as this process was there to see it pass.

use std::time::{Duration, Instant};

/// Time that is counted look by look.
///
/// A process that is stopped, frozen with its container or paused with its machine, or that waits long for a processor, finds its clock far
/// ahead of what it remembers. Its worker was most likely kept from working just as long. So between two looks no more counts than
/// they should have been apart, and a little.
#[derive(Debug, Default)]
pub(crate) struct Awake {
    last: Option<Instant>,
    passed: Duration,
}

impl Awake {
    /// Looks at the clock; says how much time has passed so far, of which this step counts for no more than `most`.
    pub(crate) fn look(&mut self, now: Instant, most: Duration) -> Duration {
        let step = self.last.map_or(Duration::ZERO, |last| now.saturating_duration_since(last));
        self.last = Some(now);
        self.passed += step.min(most);
        self.passed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_was_there_to_see_does_not_count() {
        let (start, most) = (Instant::now(), Duration::from_millis(20));
        let mut awake = Awake::default();
        let passed = [0, 10, 25, 5_000, 5_010, 5_005]
            .map(|millis| awake.look(start + Duration::from_millis(millis), most).as_millis());
        assert_eq!(passed, [0, 10, 25, 45, 55, 55]);
    }
}
