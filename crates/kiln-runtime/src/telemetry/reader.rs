//! Reading the numbers of a runtime.

use std::time::Duration;

use kiln_order::{StreamCount, StreamCounts};

use super::device_name::DeviceName;
use super::snapshot::{Gauge, Levels, Snapshot};
use crate::code::Modules;
use crate::counters::{Count, Numbers};
use crate::runtime::{DeviceRuntime, Inner};

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
    /// The numbers as they are now. It waits for nothing and does not ask the device.
    pub fn snapshot(&self) -> Snapshot {
        let inner = self.runtime.inner();
        let mut counts = self.all();
        inner.baseline().subtract_from(&mut counts);
        Snapshot { device: DeviceName::from(self.runtime.info()), counts, gauges: gauges(inner) }
    }

    /// Makes every count begin at zero again, here and now; gauges stay. Streams are not disturbed.
    pub fn reset(&self) {
        self.runtime.inner().baseline().set(self.all());
    }

    /// Everything counted since the runtime was made.
    fn all(&self) -> Numbers {
        let inner = self.runtime.inner();
        let mut counts = [0; Count::ALL.len()];
        inner.counters().add_to(&mut counts);
        let mut streams = StreamCounts::default();
        inner.tracker().add_counts(&mut streams);
        for count in StreamCount::ALL {
            counts[Count::from(*count) as usize] += streams[*count as usize];
        }
        let code = Modules::of(inner).counters();
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let elsewhere = [
            (Count::ModuleHits, code.memory_hits),
            (Count::Compilations, code.compilations),
            (Count::CompileNanoseconds, nanoseconds(code.compile_time)),
            (Count::ModuleLoads, code.loads),
            (Count::ModuleLoadNanoseconds, nanoseconds(code.load_time)),
            (Count::MemorySavedNanoseconds, nanoseconds(code.memory_time_saved)),
            (Count::DiskSavedNanoseconds, nanoseconds(code.disk.time_saved)),
            (Count::DiskHits, code.disk.hits),
            (Count::DiskMisses, code.disk.misses),
            (Count::DiskStores, code.disk.stores),
            (Count::UnfinishedUses, inner.unfinished_uses()),
            (Count::PinnedReused, inner.staging().reused()),
            (Count::PinnedMade, inner.staging().made()),
        ];
        for (count, number) in elsewhere {
            counts[count as usize] = number;
        }
        counts
    }
}

fn gauges(inner: &Inner) -> Levels {
    let memory = inner.memory().accounting();
    let (events, leased_events) = inner.tracker().event_counts();
    let mut gauges = [0; Gauge::ALL.len()];
    let levels = [
        (Gauge::LiveBytes, memory.live_bytes),
        (Gauge::PeakLiveBytes, memory.peak_live_bytes),
        (Gauge::PendingBytes, memory.pending_bytes),
        (Gauge::ReservedBytes, memory.reserved_bytes),
        (Gauge::LeasedStreams, inner.pool().leased() as u64),
        (Gauge::IdleStreams, inner.pool().idle() as u64),
        (Gauge::Events, events as u64),
        (Gauge::LeasedEvents, leased_events as u64),
        (Gauge::IdleEvents, events.saturating_sub(leased_events) as u64),
        (Gauge::LoadedModules, inner.loaded_modules() as u64),
        (Gauge::PtxSources, Modules::of(inner).sources() as u64),
        (Gauge::IdlePinnedBytes, inner.staging().idle_bytes()),
    ];
    for (gauge, level) in levels {
        gauges[gauge as usize] = level;
    }
    gauges
}
