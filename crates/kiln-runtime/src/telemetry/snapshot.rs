//! `Snapshot`: the counters of a runtime at one moment.

use super::device_name::DeviceName;
use super::prometheus::prometheus;
use crate::counters::{Count, Numbers};

/// How something is at the moment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(usize)]
#[non_exhaustive]
pub enum Gauge {
    /// Bytes of device memory in use.
    LiveBytes,
    /// The most that has been.
    PeakLiveBytes,
    /// Bytes given back while work could still use them.
    PendingBytes,
    /// Bytes taken from the device.
    ReservedBytes,
    /// Streams leased.
    LeasedStreams,
    /// Streams that wait to be leased again.
    IdleStreams,
    /// Events made.
    Events,
    /// Events in use.
    LeasedEvents,
    /// Events that wait to be used again.
    IdleEvents,
    /// Modules loaded, with those that are unloaded after their last work.
    LoadedModules,
    /// PTX texts that the code cache has loaded: those of the program, of `.kir` programs, and those that NVRTC made.
    PtxSources,
    /// Bytes of pinned memory that wait to be used again.
    IdlePinnedBytes,
}

impl Gauge {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::LiveBytes,
        Self::PeakLiveBytes,
        Self::PendingBytes,
        Self::ReservedBytes,
        Self::LeasedStreams,
        Self::IdleStreams,
        Self::Events,
        Self::LeasedEvents,
        Self::IdleEvents,
        Self::LoadedModules,
        Self::PtxSources,
        Self::IdlePinnedBytes,
    ];
}

/// As many numbers as there are gauges.
pub(super) type Levels = [u64; Gauge::ALL.len()];

/// The numbers of one device at one moment. Streams go on while they are added up, so two counts of one snapshot may be a submission
/// apart; no count is ever wrong by itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Snapshot {
    pub(super) device: DeviceName,
    pub(super) counts: Numbers,
    pub(super) gauges: Levels,
}

impl Snapshot {
    /// Which device.
    pub fn device(&self) -> &DeviceName {
        &self.device
    }

    /// How often, since the runtime was made or last reset.
    pub fn count(&self, count: Count) -> u64 {
        self.counts[count as usize]
    }

    /// How it was.
    pub fn gauge(&self, gauge: Gauge) -> u64 {
        self.gauges[gauge as usize]
    }

    /// What happened since an earlier snapshot; gauges are those of this one.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let counts = std::array::from_fn(|at| self.counts[at].saturating_sub(earlier.counts[at]));
        Self { counts, ..self.clone() }
    }

    /// Adds the numbers of another runtime of the same device.
    pub(super) fn add(&mut self, other: &Self) {
        let pairs = self.counts.iter_mut().zip(other.counts).chain(self.gauges.iter_mut().zip(other.gauges));
        for (number, more) in pairs {
            *number = number.saturating_add(more);
        }
    }

    /// As a page for Prometheus.
    pub fn prometheus(&self) -> String {
        prometheus(std::slice::from_ref(self))
    }
}
