//! How busy a service is, measured.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A new measurement weighs this part of the mean.
const WEIGHT: u64 = 8;

/// How busy a service is, as of one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Load {
    /// Requests that wait.
    pub queued: usize,
    /// Requests whose work is on the device.
    pub in_flight: usize,
    /// Requests answered so far by the device, well or not.
    pub served: u64,
    /// From the start of a request to its end on the device's clock, the latest weighing most.
    pub mean_time: Duration,
}

impl Load {
    /// How long a new request is likely to take until it is done. Only as good as the last requests resemble the next.
    pub fn expected_wait(&self) -> Duration {
        let ahead = u32::try_from(self.queued + self.in_flight).unwrap_or(u32::MAX);
        // A service that was never measured is as fast as its queue is short.
        self.mean_time.max(Duration::from_nanos(1)).saturating_mul(ahead.saturating_add(1))
    }
}

/// The measurements behind it.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    served: AtomicU64,
    mean_ns: AtomicU64,
}

impl Meter {
    pub(crate) fn record(&self, time: Duration) {
        let new = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let first = self.served.fetch_add(1, Ordering::Relaxed) == 0;
        // Threads that meet here lose one measurement at worst.
        let mean = self.mean_ns.load(Ordering::Relaxed);
        let next = if first { new } else { mean - mean / WEIGHT + new / WEIGHT };
        self.mean_ns.store(next, Ordering::Relaxed);
    }

    pub(crate) fn load(&self, queued: usize, in_flight: usize) -> Load {
        let mean_time = Duration::from_nanos(self.mean_ns.load(Ordering::Relaxed));
        Load { queued, in_flight, served: self.served.load(Ordering::Relaxed), mean_time }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_follows_what_is_measured() {
        let meter = Meter::default();
        meter.record(Duration::from_micros(8));
        assert_eq!(meter.load(0, 0).mean_time, Duration::from_micros(8));
        (0..100).for_each(|_| meter.record(Duration::from_micros(800)));
        let mean = meter.load(0, 0).mean_time;
        assert!(mean > Duration::from_micros(790) && mean <= Duration::from_micros(800), "{mean:?}");
        assert_eq!(meter.load(0, 0).served, 101);
    }

    #[test]
    fn a_short_queue_of_long_work_is_longer_than_a_long_one_of_short_work() {
        let load = |queued, nanos| Load { queued, mean_time: Duration::from_nanos(nanos), ..Load::default() };
        assert!(load(1, 1000).expected_wait() > load(10, 10).expected_wait());
        assert!(load(3, 0).expected_wait() > load(2, 0).expected_wait());
    }
}
