//! How busy each device of a group is, measured.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kiln_runtime::device_state::Phase;

/// A new measurement has this share of the mean.
const WEIGHT: u32 = 8;
/// A failing device gets one of so many pieces of work, to find out whether it works again.
const PROBE_INTERVAL: u64 = 16;

/// How busy a device is with the work that was submitted through its group, as of one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceLoad {
    /// The place of the device.
    pub index: usize,
    /// What the device is doing.
    pub phase: Phase,
    /// Work that is queued or runs.
    pub in_flight: u64,
    /// Work that is done.
    pub completed: u64,
    /// Work that the device refused or failed.
    pub failed: u64,
    /// Failures since the last work that was done.
    pub failing: u64,
    /// From submission to the end on the device's clock, of work that was done; the latest has the largest share. Work that failed does not count,
    /// so a device that refuses at once does not look fast. None before the first work was done.
    pub mean_time: Option<Duration>,
}

impl DeviceLoad {
    /// How long new work is likely to take until it is done, if it takes as long as the last. `unmeasured` stands in before the first measurement.
    pub fn expected_wait(&self, unmeasured: Duration) -> Duration {
        let ahead = u32::try_from(self.in_flight).unwrap_or(u32::MAX);
        self.mean_time
            .unwrap_or(unmeasured)
            .max(Duration::from_nanos(1))
            .saturating_mul(ahead.saturating_add(1))
    }
}

/// The measurements of all devices of a group.
pub(crate) struct LoadMeter {
    devices: Vec<Arc<DeviceMeter>>,
    submissions: AtomicU64,
}

#[derive(Default)]
pub(crate) struct DeviceMeter {
    state: Mutex<Measured>,
}

#[derive(Clone, Copy, Default)]
struct Measured {
    in_flight: u64,
    completed: u64,
    failed: u64,
    failing: u64,
    mean_time: Option<Duration>,
}

/// How a piece of work ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WorkEnd {
    Done(Duration),
    DeviceFailed,
    /// The work itself was wrong, which says nothing about the device.
    NotMeasured,
}

impl LoadMeter {
    pub(crate) fn new(devices: usize) -> Self {
        let devices = (0..devices).map(|_| Arc::default()).collect();
        Self { devices, submissions: AtomicU64::new(0) }
    }

    pub(crate) fn device(&self, index: usize) -> Option<&Arc<DeviceMeter>> {
        self.devices.get(index)
    }

    pub(crate) fn loads(&self, phase: impl Fn(usize) -> Phase) -> Vec<DeviceLoad> {
        let load = |(index, meter): (usize, &Arc<DeviceMeter>)| {
            let Measured { in_flight, completed, failed, failing, mean_time } = *meter.lock();
            DeviceLoad { index, phase: phase(index), in_flight, completed, failed, failing, mean_time }
        };
        self.devices.iter().enumerate().map(load).collect()
    }

    /// Counts one more piece of work; whether it is one that probes a failing device.
    pub(crate) fn next_probes(&self) -> bool {
        self.submissions.fetch_add(1, Ordering::Relaxed) % PROBE_INTERVAL == PROBE_INTERVAL - 1
    }
}

/// The devices that may take work, the best choice first: those that do not fail before those that do, or after one of those if `probe`; each by how
/// long it is likely to take. Devices that are not ready are left out.
pub(crate) fn ranking(loads: &[DeviceLoad], probe: bool) -> Vec<usize> {
    // A device that was never measured is taken to be as fast as the mean of the others.
    let measured: Vec<_> = loads.iter().filter_map(|load| load.mean_time).collect();
    let count = u32::try_from(measured.len()).unwrap_or(u32::MAX).max(1);
    let unmeasured = measured.iter().sum::<Duration>() / count;
    let mut ready: Vec<&DeviceLoad> = loads.iter().filter(|load| load.phase == Phase::Ready).collect();
    // Of equals, the one that has done less comes first, so that each is measured.
    ready.sort_by_key(|load| (load.failing > 0, load.expected_wait(unmeasured), load.completed, load.index));
    if let Some(at) = ready.iter().position(|load| load.failing > 0).filter(|_| probe) {
        let probed = ready.remove(at);
        ready.insert(0, probed);
    }
    ready.into_iter().map(|load| load.index).collect()
}

impl DeviceMeter {
    pub(crate) fn begin(&self) {
        self.lock().in_flight += 1;
    }

    pub(crate) fn end(&self, end: WorkEnd) {
        let mut state = self.lock();
        state.in_flight = state.in_flight.saturating_sub(1);
        match end {
            WorkEnd::Done(time) => {
                state.completed += 1;
                state.failing = 0;
                state.mean_time = Some(match state.mean_time {
                    Some(mean) => mean - mean / WEIGHT + time / WEIGHT,
                    None => time,
                });
            }
            WorkEnd::DeviceFailed => {
                state.failed += 1;
                state.failing += 1;
            }
            WorkEnd::NotMeasured => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, Measured> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Work that counts as in flight until it ends, or until nothing is left that could end it.
pub(crate) struct BegunWork {
    meter: Arc<DeviceMeter>,
    is_ended: bool,
}

impl BegunWork {
    pub(crate) fn new(meter: Arc<DeviceMeter>) -> Self {
        meter.begin();
        Self { meter, is_ended: false }
    }

    pub(crate) fn end(mut self, end: WorkEnd) {
        self.is_ended = true;
        self.meter.end(end);
    }
}

impl Drop for BegunWork {
    fn drop(&mut self) {
        // The work panicked.
        if !self.is_ended {
            self.meter.end(WorkEnd::NotMeasured);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(index: usize, in_flight: u64, failing: u64, micros: Option<u64>) -> DeviceLoad {
        DeviceLoad {
            index,
            phase: Phase::Ready,
            in_flight,
            completed: 0,
            failed: failing,
            failing,
            mean_time: micros.map(Duration::from_micros),
        }
    }

    #[test]
    fn the_shortest_expected_wait_comes_first() {
        let loads = [load(0, 3, 0, Some(10)), load(1, 0, 0, Some(50)), load(2, 1, 0, Some(10))];
        assert_eq!(ranking(&loads, false), [2, 0, 1]);
    }

    #[test]
    fn a_failing_device_comes_last_however_fast_it_was_and_first_when_it_is_probed() {
        let loads = [load(0, 0, 1, Some(1)), load(1, 9, 0, Some(50)), load(2, 0, 3, None)];
        assert_eq!(ranking(&loads, false), [1, 0, 2]);
        assert_eq!(ranking(&loads, true), [0, 1, 2]);
    }

    #[test]
    fn a_device_that_was_never_measured_is_as_fast_as_the_others() {
        let loads = [load(0, 1, 0, Some(10)), load(1, 1, 0, None), load(2, 0, 0, None)];
        assert_eq!(ranking(&loads, false), [2, 0, 1]);
    }

    #[test]
    fn a_device_that_is_not_ready_is_left_out() {
        let lost = DeviceLoad { phase: Phase::Lost, ..load(0, 0, 0, Some(1)) };
        assert_eq!(ranking(&[lost, load(1, 5, 2, None)], true), [1]);
    }

    #[test]
    fn failures_and_wrong_work_are_no_measurements() {
        let meter = DeviceMeter::default();
        for end in [WorkEnd::Done(Duration::from_micros(8)), WorkEnd::DeviceFailed, WorkEnd::NotMeasured] {
            meter.begin();
            meter.end(end);
        }
        let state = *meter.lock();
        assert_eq!((state.completed, state.failed, state.failing, state.in_flight), (1, 1, 1, 0));
        assert_eq!(state.mean_time, Some(Duration::from_micros(8)));
    }
}
