//! The numbers of a whole process.

use super::prometheus::prometheus;
use super::snapshot::{Gauge, Snapshot};
use crate::counters::Count;
use crate::runtime::live_runtimes;

/// The numbers of one moment, of every runtime in this process. Made by [`process_snapshot`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ProcessSnapshot {
    devices: Vec<Snapshot>,
}

/// The numbers of every runtime in this process that is alive. What a dropped runtime counted is not among them.
///
/// ```
/// use kiln::DeviceRuntime;
/// use kiln::telemetry::{Count, process_snapshot};
///
/// let (one, two) = (DeviceRuntime::simulated(1)?, DeviceRuntime::simulated(2)?);
/// let before = process_snapshot().count(Count::Uploads);
/// one.upload(&[1_u8])?;
/// two.upload(&[2_u8])?;
/// assert_eq!(process_snapshot().count(Count::Uploads), before + 2);
/// # Ok::<(), kiln::Error>(())
/// ```
pub fn process_snapshot() -> ProcessSnapshot {
    let mut devices: Vec<Snapshot> = Vec::new();
    for runtime in live_runtimes() {
        let snapshot = runtime.telemetry().snapshot();
        match devices.iter_mut().find(|known| known.device == snapshot.device) {
            Some(known) => known.add(&snapshot),
            None => devices.push(snapshot),
        }
    }
    ProcessSnapshot { devices }
}

impl ProcessSnapshot {
    /// The numbers of each device; runtimes of one device are added up.
    pub fn devices(&self) -> &[Snapshot] {
        &self.devices
    }

    /// How often, on all devices.
    pub fn count(&self, count: Count) -> u64 {
        self.devices.iter().map(|device| device.count(count)).fold(0, u64::saturating_add)
    }

    /// How it was, on all devices together.
    pub fn gauge(&self, gauge: Gauge) -> u64 {
        self.devices.iter().map(|device| device.gauge(gauge)).fold(0, u64::saturating_add)
    }

    /// As one page for Prometheus.
    pub fn prometheus(&self) -> String {
        prometheus(&self.devices)
    }
}
