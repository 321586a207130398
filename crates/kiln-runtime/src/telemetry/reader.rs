//! Reads the counters of a runtime.

use super::device_name::DeviceName;
use super::snapshot::{Gauge, Levels, Snapshot};
use crate::code::Modules;
use crate::runtime::{DeviceRuntime, Meters};

/// The numbers of one runtime. Made by [`DeviceRuntime::telemetry`].
#[derive(Debug)]
pub struct Telemetry<'a> {
    runtime: &'a DeviceRuntime,
}

impl DeviceRuntime {
    /// What the runtime did, in numbers.
    pub fn telemetry(&self) -> Telemetry<'_> {
        Telemetry { runtime: self }
    }
}

impl Telemetry<'_> {
    #[cfg(feature = "metrics")]
    pub(super) fn runtime(&self) -> &DeviceRuntime {
        self.runtime
    }

    /// The numbers as they are now. It asks no device and waits for no work.
    pub fn snapshot(&self) -> Snapshot {
        let inner = self.runtime.inner();
        let meters = inner.meters();
        let mut counts = meters.counts();
        inner.baseline().subtract_from(&mut counts);
        Snapshot { device: DeviceName::from(meters.device()), counts, gauges: gauges(&meters) }
    }

    /// Makes every count begin at zero again, here and now; gauges stay. Streams are not disturbed.
    pub fn reset(&self) {
        let inner = self.runtime.inner();
        inner.baseline().set(inner.meters().counts());
    }
}

/// How things are at the moment.
pub(super) fn gauges(meters: &Meters) -> Levels {
    let memory = meters.accounting();
    let (events, leased_events) = meters.tracker().event_counts();
    let sources = meters.extension::<Modules>().map_or(0, |modules| modules.sources());
    let mut gauges = [0; Gauge::ALL.len()];
    let levels = [
        (Gauge::LiveBytes, memory.live_bytes),
        (Gauge::PeakLiveBytes, memory.peak_live_bytes),
        (Gauge::PendingBytes, memory.pending_bytes),
        (Gauge::ReservedBytes, memory.reserved_bytes),
        (Gauge::LeasedStreams, meters.pool().leased() as u64),
        (Gauge::IdleStreams, meters.pool().idle() as u64),
        (Gauge::Events, events as u64),
        (Gauge::LeasedEvents, leased_events as u64),
        (Gauge::IdleEvents, events.saturating_sub(leased_events) as u64),
        (Gauge::LoadedModules, meters.loaded_modules() as u64),
        (Gauge::PtxSources, sources as u64),
        (Gauge::IdlePinnedBytes, meters.staging().idle_bytes()),
    ];
    for (gauge, level) in levels {
        gauges[gauge as usize] = level;
    }
    gauges
}
