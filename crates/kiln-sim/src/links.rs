//! `Links`: which devices of a machine can copy to each other directly, and how fast.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

/// A connection between two devices, the same in both directions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceLink {
    /// Bytes that pass in a microsecond, in one direction; 450,000 is 450 GB/s.
    pub bytes_per_us: u64,
    /// Time before the first byte arrives.
    pub latency_ns: u64,
}

impl DeviceLink {
    /// About what NVLink gives between two GPUs of one host: 450 GB/s.
    pub const NVLINK: Self = Self { bytes_per_us: 450_000, latency_ns: 1_800 };
    /// About what PCI Express of the fifth generation gives: 55 GB/s.
    pub const PCIE: Self = Self { bytes_per_us: 55_000, latency_ns: 2_500 };

    pub(crate) fn copy_ns(self, bytes: u64) -> u64 {
        let moving_ns = u128::from(bytes) * 1_000 / u128::from(self.bytes_per_us.max(1));
        self.latency_ns.saturating_add(u64::try_from(moving_ns).unwrap_or(u64::MAX))
    }
}

/// The connections between the devices of a machine. By default every two devices are connected, as fast as
/// [`Costs`](crate::Costs) says. Two devices without a connection refuse copies between each other; a program copies through the host then.
///
/// ```
/// use kiln_sim::{DeviceConfig, DeviceLink, Links, Machine, MachineConfig};
///
/// // Two pairs; the devices of a pair are connected, the pairs are not.
/// let links = Links::none().with(0, 1, DeviceLink::NVLINK).with(2, 3, DeviceLink::NVLINK);
/// let config = (0..4).fold(MachineConfig::seeded(1), |config, _| config.device(DeviceConfig::default()));
/// let machine = Machine::new(config.links(links.clone()));
/// assert_eq!(machine.devices().len(), 4);
/// assert!(links.connects(1, 0) && !links.connects(1, 2));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Links {
    /// Whether two devices that are not in the list are connected.
    others: bool,
    /// By the two ordinals, the smaller first; none for two devices that are not connected.
    between: BTreeMap<(u32, u32), Option<DeviceLink>>,
    /// How many devices a host has; none if all are on one.
    devices_per_host: Option<NonZeroU32>,
}

impl Default for Links {
    fn default() -> Self {
        Self::all()
    }
}

impl Links {
    /// Every two devices are connected.
    pub fn all() -> Self {
        Self { others: true, between: BTreeMap::new(), devices_per_host: None }
    }

    /// No two devices are connected.
    pub fn none() -> Self {
        Self { others: false, between: BTreeMap::new(), devices_per_host: None }
    }

    /// The same, and these two devices are connected like this.
    #[must_use]
    pub fn with(mut self, one: u32, other: u32, link: DeviceLink) -> Self {
        self.between.insert(pair(one, other), Some(link));
        self
    }

    /// The same, and these two devices are not connected.
    #[must_use]
    pub fn without(mut self, one: u32, other: u32) -> Self {
        self.between.insert(pair(one, other), None);
        self
    }

    /// The same with so many devices on each host, by their ordinals; all are on one host otherwise, and with 0. An all-reduce over several hosts goes through a tree of hosts where that is faster than
    /// a ring, as NCCL chooses: for small buffers and many hosts. What hosts have between them is the links of their devices.
    #[must_use]
    pub fn with_devices_per_host(mut self, devices: u32) -> Self {
        self.devices_per_host = NonZeroU32::new(devices);
        self
    }

    /// The host of a device, by number.
    pub(crate) fn host_of(&self, device: u32) -> u32 {
        self.devices_per_host.map_or(0, |devices| device / devices)
    }

    /// Whether two devices can copy to each other directly. A device can always copy to itself.
    pub fn connects(&self, one: u32, other: u32) -> bool {
        one == other || self.between.get(&pair(one, other)).map_or(self.others, Option::is_some)
    }

    /// The connection of two devices, where its speed was given.
    pub fn link(&self, one: u32, other: u32) -> Option<DeviceLink> {
        self.between.get(&pair(one, other)).copied().flatten()
    }
}

fn pair(one: u32, other: u32) -> (u32, u32) {
    (one.min(other), one.max(other))
}
