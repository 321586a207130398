//! How busy a service is, measured.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// A new measurement has this share of the mean.
const WEIGHT: u64 = 8;

/// How busy a service is, as of one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Load {
    /// Requests that wait.
    pub queued: usize,
    /// Requests whose work is on the device.
    pub in_flight: usize,
    /// Requests that were started and have ended, with any result.
    pub served: u64,
    /// Of these, requests that the device failed.
    pub failed: u64,
    /// Requests that the device failed since the last one that succeeded.
    pub failing: u32,
    /// From the start of a request to its end on the device's clock; the latest has the largest share. Only requests that
    /// succeeded count: a device that refuses at once is not fast.
    pub mean_time: Duration,
}

impl Load {
    /// How long a new request is likely to take until it is done. An estimate: it assumes that the next requests
    /// resemble the last.
    pub fn expected_wait(&self) -> Duration {
        let ahead = u32::try_from(self.queued + self.in_flight).unwrap_or(u32::MAX);
        // A service that was never measured is as fast as its queue is short.
        self.mean_time.max(Duration::from_nanos(1)).saturating_mul(ahead.saturating_add(1))
    }
}

/// How a request that was started ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Served {
    /// With its output.
    Completed,
    /// The device failed it.
    DeviceFailed,
    /// The request was wrong, or it was abandoned; this says nothing about the device.
    NotMeasured,
}

/// The measurements behind a [`Load`].
#[derive(Debug, Default)]
pub(crate) struct Meter {
    served: AtomicU64,
    failed: AtomicU64,
    failing: AtomicU32,
    completed: AtomicU64,
    mean_ns: AtomicU64,
}

impl Meter {
    pub(crate) fn record(&self, served: Served, time: Duration) {
        self.served.fetch_add(1, Ordering::Relaxed);
        match served {
            Served::Completed => {
                self.failing.store(0, Ordering::Relaxed);
                self.record_time(time);
            }
            Served::DeviceFailed => {
                self.failed.fetch_add(1, Ordering::Relaxed);
                self.failing.fetch_add(1, Ordering::Relaxed);
            }
            Served::NotMeasured => {}
        }
    }

    fn record_time(&self, time: Duration) {
        let new = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let first = self.completed.fetch_add(1, Ordering::Relaxed) == 0;
        // Of two threads that record at the same time, one measurement may be lost.
        let mean = self.mean_ns.load(Ordering::Relaxed);
        let next = if first { new } else { mean - mean / WEIGHT + new / WEIGHT };
        self.mean_ns.store(next, Ordering::Relaxed);
    }

    pub(crate) fn load(&self, queued: usize, in_flight: usize) -> Load {
        Load {
            queued,
            in_flight,
            served: self.served.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            failing: self.failing.load(Ordering::Relaxed),
            mean_time: Duration::from_nanos(self.mean_ns.load(Ordering::Relaxed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_follows_what_is_measured() {
        let meter = Meter::default();
        meter.record(Served::Completed, Duration::from_micros(8));
        assert_eq!(meter.load(0, 0).mean_time, Duration::from_micros(8));
        (0..100).for_each(|_| meter.record(Served::Completed, Duration::from_micros(800)));
        let mean = meter.load(0, 0).mean_time;
        assert!(mean > Duration::from_micros(790) && mean <= Duration::from_micros(800), "{mean:?}");
        assert_eq!(meter.load(0, 0).served, 101);
    }

    #[test]
    fn failures_are_counted_and_leave_the_mean_alone() {
        let meter = Meter::default();
        meter.record(Served::DeviceFailed, Duration::from_nanos(1));
        meter.record(Served::Completed, Duration::from_micros(8));
        (0..3).for_each(|_| meter.record(Served::DeviceFailed, Duration::from_nanos(1)));
        meter.record(Served::NotMeasured, Duration::from_nanos(1));
        let load = meter.load(0, 0);
        assert_eq!((load.served, load.failed, load.failing), (6, 4, 3));
        assert_eq!(load.mean_time, Duration::from_micros(8));
        meter.record(Served::Completed, Duration::from_micros(8));
        assert_eq!((meter.load(0, 0).failed, meter.load(0, 0).failing), (4, 0));
    }

    #[test]
    fn a_short_queue_of_long_work_is_longer_than_a_long_one_of_short_work() {
        let load = |queued, nanos| Load { queued, mean_time: Duration::from_nanos(nanos), ..Load::default() };
        assert!(load(1, 1000).expected_wait() > load(10, 10).expected_wait());
        assert!(load(3, 0).expected_wait() > load(2, 0).expected_wait());
    }
}
