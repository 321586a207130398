//! A clock that leaves out time in which this process was stopped, for timeouts.

use std::time::{Duration, Instant};

/// A clock that leaves out time in which this process could not run.
///
/// A process that was stopped, frozen with its container or paused with its virtual machine, or that waited long for a processor, finds
/// its clock far ahead. Its worker most likely did not run either. So of the time between two readings no more counts than a given
/// most.
#[derive(Debug, Default)]
pub(crate) struct RunningTime {
    last: Option<Instant>,
    passed: Duration,
}

impl RunningTime {
    /// Reads the clock: the time that passed so far, where this step counts for `most` at the most.
    pub(crate) fn read(&mut self, now: Instant, most: Duration) -> Duration {
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
    fn a_gap_between_two_readings_does_not_count() {
        let (start, most) = (Instant::now(), Duration::from_millis(20));
        let mut time = RunningTime::default();
        let passed = [0, 10, 25, 5_000, 5_010, 5_005]
            .map(|millis| time.read(start + Duration::from_millis(millis), most).as_millis());
        assert_eq!(passed, [0, 10, 25, 45, 55, 55]);
    }
}
