//! The clock of a recording, which a submission reads twice.
//!
//! On the wall's time a tick is one of the processor's counter, where that is steady: a submission notes the counter, and the thread that
//! writes the file compares it with the device's clock each time it writes, and works out the times between. So neither a clock that is
//! set nor a counter that runs a little fast moves the host's times away from the device's. Elsewhere, and in virtual time, a tick is a nanosecond
//! of the recording.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kiln_driver::Driver;
use kiln_trace::{RecordingClock, TickScale};

use super::processor_counter;

/// Two readings are so far apart that what lies between the reading of one clock and of the other does not matter.
const APART_NS: u64 = 1_000_000;
/// How often both clocks are read for one reading.
const TRIES: usize = 3;

/// One moment on two clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockStart {
    /// What the device's clock says.
    pub(super) clock: Duration,
    /// What the time of the recording is.
    pub(super) time_ns: u64,
}

/// The clock of one device's recording.
pub(super) struct TickClock {
    driver: Arc<dyn Driver>,
    start: ClockStart,
    /// Set if ticks are the processor's.
    readings: Option<Mutex<Readings>>,
}

/// Two places of the processor's counter whose times are known.
#[derive(Clone, Copy, Debug)]
struct Readings {
    from: Reading,
    to: Reading,
}

#[derive(Clone, Copy, Debug)]
struct Reading {
    ticks: u64,
    time_ns: u64,
}

impl TickClock {
    pub(super) fn new(driver: Arc<dyn Driver>, clock: RecordingClock, start: ClockStart) -> Self {
        let counts = clock == RecordingClock::Wall && processor_counter::is_steady();
        let mut made = Self { driver, start, readings: None };
        made.readings = counts.then(|| {
            let first = made.reading();
            Mutex::new(Readings { from: first, to: first })
        });
        made
    }

    /// Both clocks at once: of some tries the one with the least between them, because a thread may lose its processor there.
    fn reading(&self) -> Reading {
        let mut best = (u64::MAX, Reading { ticks: 0, time_ns: 0 });
        for _ in 0..TRIES {
            let before = processor_counter::read();
            let time_ns = self.now();
            let between = processor_counter::read().saturating_sub(before);
            if between < best.0 {
                best = (between, Reading { ticks: before + between / 2, time_ns });
            }
        }
        best.1
    }

    /// Whether ticks are those of the processor's counter.
    pub(super) fn counts(&self) -> bool {
        self.readings.is_some()
    }

    /// The ticks of now.
    #[inline]
    pub(super) fn ticks(&self) -> u64 {
        match &self.readings {
            Some(_) => processor_counter::read(),
            None => self.now(),
        }
    }

    /// The time of the recording.
    pub(super) fn now(&self) -> u64 {
        self.time_at(self.driver.clock().now())
    }

    /// The time of the recording when the device's clock says this; that of its beginning for what was before.
    pub(super) fn time_at(&self, clock: Duration) -> u64 {
        let since = clock.saturating_sub(self.start.clock);
        self.start.time_ns.saturating_add(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl TickScale for TickClock {
    fn set(&self) {
        if let Some(readings) = &self.readings {
            let now = self.reading();
            locked(readings).add(now);
        }
    }

    fn time_ns(&self, ticks: u64) -> u64 {
        self.readings.as_ref().map_or(ticks, |readings| locked(readings).time_ns(ticks))
    }
}

fn locked(readings: &Mutex<Readings>) -> MutexGuard<'_, Readings> {
    readings.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Readings {
    /// Goes on to a later reading, if that is far enough from the last.
    fn add(&mut self, now: Reading) {
        let is_far = |from: Reading, to: Reading| to.time_ns.saturating_sub(from.time_ns) >= APART_NS;
        if is_far(self.to, now) {
            *self = Self { from: self.to, to: now };
        } else if !is_far(self.from, self.to) {
            self.to = now;
        }
    }

    /// The time of a tick, on the line through both readings.
    fn time_ns(&self, ticks: u64) -> u64 {
        let Self { from, to } = self;
        let (run, rise) = (to.ticks.saturating_sub(from.ticks), to.time_ns.saturating_sub(from.time_ns));
        if run == 0 {
            return from.time_ns;
        }
        let pace = rise as f64 / run as f64;
        if ticks >= from.ticks {
            from.time_ns.saturating_add(((ticks - from.ticks) as f64 * pace) as u64)
        } else {
            from.time_ns.saturating_sub(((from.ticks - ticks) as f64 * pace) as u64)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_lie_between_the_readings_around_them() {
        let at = |ticks, time_ns| Reading { ticks, time_ns };
        let mut readings = Readings { from: at(1_000, 50), to: at(1_000, 50) };
        assert_eq!(readings.time_ns(5_000), 50, "nothing is known of the pace yet");
        // Three ticks are a nanosecond.
        readings.add(at(4_000, 1_050));
        assert_eq!([1_000, 2_500, 4_000].map(|ticks| readings.time_ns(ticks)), [50, 550, 1_050]);
        // The first two are near each other; another one as near takes the place of the second.
        readings.add(at(7_000, 2_050));
        assert_eq!((readings.from.ticks, readings.to.ticks), (1_000, 7_000));
        readings.add(at(6_001_000, 2_000_050));
        assert_eq!((readings.from.ticks, readings.to.ticks), (7_000, 6_001_000));
        readings.add(at(6_004_000, 2_001_050));
        assert_eq!(readings.to.ticks, 6_001_000, "too near");
        // The counter runs slower from here on, and the times before stay what they were.
        readings.add(at(8_001_000, 4_000_050));
        assert_eq!(readings.time_ns(7_001_000), 3_000_050);
        assert_eq!(readings.time_ns(6_001_000), 2_000_050);
        assert_eq!(readings.time_ns(6_000_000), 1_999_050, "before both: with the pace between them");
        assert_eq!(readings.time_ns(0), 0);
        assert!(readings.time_ns(u64::MAX) > u64::MAX / 2, "no overflow");
    }
}
