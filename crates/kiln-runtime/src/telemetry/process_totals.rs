//! The numbers of a whole process: all its runtimes, also those that have ended.
//!
//! A scraper takes a counter that decreases for one that started anew. So what a runtime has counted stays when it ends: its
//! last numbers are added to those of its device.

use super::device_name::DeviceName;
use super::prometheus::prometheus;
use super::reader::gauges;
use super::snapshot::{Gauge, Snapshot};
use crate::counters::Count;
use crate::runtime::process_runtimes;

/// The numbers of all runtimes of this process, added up for each device.
///
/// Counts are those since the first runtime of a device was made: they include runtimes that have ended, and
/// [`reset`](super::Telemetry::reset) does not change them. Gauges are those of the runtimes that exist; where a device has
/// several, [`Gauge::PeakLiveBytes`] is the sum of their peaks.
///
/// ```
/// use kiln::telemetry::{Count, process_snapshot};
///
/// let gpu = kiln::DeviceRuntime::simulated(1)?;
/// gpu.upload(&[1_u32; 256])?;
/// drop(gpu);
/// let seen = process_snapshot();
/// assert!(seen.count(Count::UploadedBytes) >= 1024);
/// assert!(seen.prometheus().contains("kiln_copied_bytes_total{kind=\"simulated\",device=\"0\""));
/// # Ok::<(), kiln::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ProcessSnapshot {
    devices: Vec<Snapshot>,
}

/// The numbers of this process as they are now. It asks no device and waits for no work.
pub fn process_snapshot() -> ProcessSnapshot {
    let (running, ended) = process_runtimes(|meters| Snapshot {
        device: DeviceName::from(meters.device()),
        counts: meters.counts(),
        gauges: gauges(meters),
    });
    let ended = ended.into_iter().map(|(device, counts)| {
        let gauges = [0; Gauge::ALL.len()];
        Snapshot { device: DeviceName::from(&device), counts, gauges }
    });
    let mut devices: Vec<Snapshot> = Vec::new();
    for snapshot in ended.chain(running) {
        match devices.iter_mut().find(|known| known.device == snapshot.device) {
            Some(known) => known.add(&snapshot),
            None => devices.push(snapshot),
        }
    }
    devices.sort_by(|one, other| one.device.cmp(&other.device));
    ProcessSnapshot { devices }
}

impl ProcessSnapshot {
    /// The numbers of each device, by kind and ordinal.
    pub fn devices(&self) -> &[Snapshot] {
        &self.devices
    }

    /// How often, on all devices.
    pub fn count(&self, count: Count) -> u64 {
        self.devices.iter().map(|device| device.count(count)).fold(0, u64::saturating_add)
    }

    /// How it was, on all devices.
    pub fn gauge(&self, gauge: Gauge) -> u64 {
        self.devices.iter().map(|device| device.gauge(gauge)).fold(0, u64::saturating_add)
    }

    /// As one page for Prometheus: each series once for each device.
    pub fn prometheus(&self) -> String {
        prometheus(&self.devices)
    }
}
