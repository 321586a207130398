//! `DeviceGroup`: the devices, and the connections between them.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use kiln_driver::{Driver, Health};
use kiln_runtime::device_state::Phase;
use kiln_runtime::prober::prober;
use kiln_runtime::{DeviceRuntime, Element, Error, GpuRef, Prober, RuntimeConfig};

use crate::device_load::LoadMeter;
use crate::error::{GroupError, Result};
use crate::link_streams::LinkStreams;
use crate::peer_access::{PeerAccess, PeerMatrix};
use crate::peer_link::PeerLink;

/// Several devices of one process. Cheap to clone; clones are the same group.
///
/// Devices are named by their place in the group, counted from 0, in the order they were given. The group holds their runtimes. Every call may
/// come from any thread.
#[derive(Clone)]
pub struct DeviceGroup {
    members: Arc<Members>,
}

pub(crate) struct Members {
    /// Before the runtimes, so that it is given back first.
    links: Vec<Mutex<LinkState>>,
    /// By device: the streams of links that begin there, and of those that end there.
    streams: Vec<[LinkStreams; 2]>,
    pub(crate) runtimes: Vec<DeviceRuntime>,
    pub(crate) loads: LoadMeter,
}

/// What is known of the way from one device to another.
enum LinkState {
    Unknown,
    Direct(Arc<PeerLink>),
    ThroughHost(Arc<str>),
}

impl DeviceGroup {
    /// A group of these runtimes.
    ///
    /// # Errors
    /// No runtimes; two of one device.
    pub fn new(runtimes: impl IntoIterator<Item = DeviceRuntime>) -> Result<Self> {
        let runtimes: Vec<_> = runtimes.into_iter().collect();
        if runtimes.is_empty() {
            return Err(GroupError::NoDevices);
        }
        for (second, runtime) in runtimes.iter().enumerate() {
            let is_same = |other: &DeviceRuntime| other.info().key == runtime.info().key;
            if let Some(first) = runtimes[..second].iter().position(is_same) {
                return Err(GroupError::Twice { first, second });
            }
        }
        let links = (0..runtimes.len() * runtimes.len()).map(|_| Mutex::new(LinkState::Unknown)).collect();
        let streams = runtimes.iter().map(|_| Default::default()).collect();
        let loads = LoadMeter::new(runtimes.len());
        Ok(Self { members: Arc::new(Members { links, streams, runtimes, loads }) })
    }

    /// A group over drivers that are open already, each with a runtime of this configuration.
    ///
    /// # Errors
    /// As for [`new`](Self::new); what a device says when its runtime is made.
    pub fn over<D: Driver>(
        drivers: impl IntoIterator<Item = Arc<D>>,
        config: &RuntimeConfig,
    ) -> Result<Self> {
        let open = |(index, driver): (usize, Arc<D>)| {
            DeviceRuntime::from_driver(driver, config.clone()).map_err(GroupError::at(index))
        };
        Self::new(drivers.into_iter().enumerate().map(open).collect::<Result<Vec<_>>>()?)
    }

    /// All devices of this process that work, under the policy in force: CUDA devices, or the simulated one under
    /// [`Policy::Simulate`](kiln_probe::Policy::Simulate).
    ///
    /// # Errors
    /// No device; a device that works and cannot be opened.
    pub fn all() -> Result<Self> {
        Self::of_prober(prober())
    }

    /// As [`all`](Self::all), for the devices of a prober.
    ///
    /// # Errors
    /// As for [`all`](Self::all).
    pub fn of_prober(prober: &Prober) -> Result<Self> {
        let unusable = |source| GroupError::Probe { source };
        let available = match prober.availability().map_err(unusable)? {
            kiln_probe::Availability::Available(devices) => devices,
            kiln_probe::Availability::Absent(absence) => return Err(unusable(absence.into())),
        };
        let ordinals = available.working().map(|device| device.ordinal);
        let open = |(index, ordinal)| prober.runtime(ordinal).cloned().map_err(GroupError::at(index));
        Self::new(ordinals.enumerate().map(open).collect::<Result<Vec<_>>>()?)
    }

    /// The number of devices.
    pub fn len(&self) -> usize {
        self.runtimes().len()
    }

    /// Whether there are none, which no group is.
    pub fn is_empty(&self) -> bool {
        self.runtimes().is_empty()
    }

    /// The runtimes, in order.
    pub fn runtimes(&self) -> &[DeviceRuntime] {
        &self.members.runtimes
    }

    /// The runtime of a device.
    ///
    /// # Errors
    /// A device that the group does not have.
    pub fn runtime(&self, index: usize) -> Result<&DeviceRuntime> {
        self.runtimes().get(index).ok_or(GroupError::NoSuchDevice { index, len: self.len() })
    }

    /// The devices that can be used right now. A lost device of a worker process comes back; another one does not.
    pub fn ready(&self) -> Vec<usize> {
        let is_ready = |index: &usize| {
            let runtime = &self.runtimes()[*index];
            runtime.status().phase() == Phase::Ready && runtime.driver().health().is_healthy()
        };
        (0..self.len()).filter(is_ready).collect()
    }

    /// How a copy from one device to another goes. The first question about two devices tries it.
    ///
    /// # Errors
    /// A device that the group does not have; a lost device.
    #[track_caller]
    pub fn peer_access(&self, from: usize, to: usize) -> Result<PeerAccess> {
        self.runtime(from)?;
        self.runtime(to)?;
        if from == to {
            return Ok(PeerAccess::SameDevice);
        }
        // What was tried before says nothing of a device that is lost since.
        for index in [from, to] {
            if let Health::Lost(error) = self.runtimes()[index].driver().health() {
                return Err(GroupError::at(index)(Error::new(error)));
            }
        }
        Ok(match self.way(from, to)? {
            Way::Direct(_) => PeerAccess::Direct,
            Way::ThroughHost(why) => PeerAccess::ThroughHost { why },
        })
    }

    /// How copies go between every two devices. Two devices of which one is lost copy through the host, which fails.
    #[track_caller]
    pub fn peers(&self) -> PeerMatrix {
        let len = self.len();
        let lost = |error: GroupError| PeerAccess::ThroughHost { why: error.to_string().into() };
        let mut access = Vec::with_capacity(len * len);
        for at in 0..len * len {
            access.push(self.peer_access(at / len, at % len).unwrap_or_else(lost));
        }
        PeerMatrix::new(len, access)
    }

    /// Waits until everything submitted so far to every device is done.
    ///
    /// # Errors
    /// The first fault, with its device; all others were waited for.
    #[track_caller]
    pub fn synchronize(&self) -> Result<()> {
        let mut waited = Ok(());
        // No closure, in which the caller's line would not be known.
        for (index, runtime) in self.runtimes().iter().enumerate() {
            waited = waited.and(runtime.synchronize().map_err(GroupError::at(index)));
        }
        waited
    }

    /// The place of the device that a buffer lies on.
    pub(crate) fn owner<T: Element>(&self, what: &'static str, buffer: &GpuRef<T>) -> Result<usize> {
        let is_here = |runtime: &DeviceRuntime| buffer.belongs_to(runtime);
        self.runtimes().iter().position(is_here).ok_or(GroupError::NotInGroup { what })
    }

    /// Whether both are the same group.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.members, &other.members)
    }

    pub(crate) fn loads_meter(&self) -> &LoadMeter {
        &self.members.loads
    }

    /// The way from one device to another, which is tried the first time. Both exist and differ.
    #[track_caller]
    pub(crate) fn way(&self, from: usize, to: usize) -> Result<Way> {
        let state = &self.members.links[from * self.len() + to];
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*state, LinkState::Unknown) {
            let ends = [(from, self.runtime(from)?), (to, self.runtime(to)?)];
            let streams = [&self.members.streams[from][0], &self.members.streams[to][1]];
            *state = match PeerLink::open(ends, streams)? {
                Ok(link) => LinkState::Direct(Arc::new(link)),
                Err(why) => LinkState::ThroughHost(why),
            };
        }
        Ok(match &*state {
            LinkState::Direct(link) => Way::Direct(link.clone()),
            LinkState::ThroughHost(why) => Way::ThroughHost(why.clone()),
            LinkState::Unknown => Way::ThroughHost("it was not tried".into()),
        })
    }
}

/// How bytes go from one device to another.
pub(crate) enum Way {
    Direct(Arc<PeerLink>),
    ThroughHost(Arc<str>),
}

impl fmt::Debug for DeviceGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.runtimes()).finish()
    }
}
