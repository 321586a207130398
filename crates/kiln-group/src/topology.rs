//! `Topology`: how the devices of many ranks are connected, as a line of text, and how long collectives take over it.
//!
//! Parts: [`link_speed`] (rates and latencies as text), [`parse`] (the line), [`error`], [`estimate`] (the formulas).

mod error;
mod estimate;
mod link_speed;
mod parse;

use std::fmt;

pub use error::TopologyError;
pub use estimate::{CollectiveAlgorithm, CollectiveEstimate};
pub use link_speed::LinkSpeed;
use link_speed::written_rate;

/// The most ranks of a topology.
pub(crate) const MAX_RANKS: u32 = 1 << 20;

/// How the devices of one host are connected.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum HostLink {
    /// NVLink, with a switch or between every two devices.
    NvLink,
    /// PCI Express.
    Pcie,
}

/// How the devices of many ranks are connected: hosts with equally many devices, which all have the same link, and a network between the hosts.
///
/// ```text
/// [COUNT x] LINK [per host] [, COUNT hosts over [COUNT x] RATE [, LATENCY]]
/// LINK      nvlink or pcie, with ( RATE ) or ( RATE , LATENCY ) behind it, or nothing for the usual values
/// RATE      a number with kB/s, MB/s, GB/s, TB/s (bytes) or kb/s, Mb/s, Gb/s, Tb/s (bits)
/// LATENCY   a number with ns, us, ms or s
/// ```
///
/// The rate of a link is that of one device in one direction. The rate of the network is that of one host in one direction; `8x 400Gb/s` are eight adapters of a host. A
/// latency is the time that a message takes besides its bytes; without one it is 1.8 us for NVLink, 2.5 us for PCI Express and 5 us for the network.
///
/// ```
/// use kiln::group::{CollectiveAlgorithm, CollectiveKind, Topology};
/// use std::time::Duration;
///
/// let cluster: Topology = "8x nvlink(450GB/s, 1us) per host, 4 hosts over 8x 400Gb/s, 5us".parse()?;
/// assert_eq!((cluster.ranks(), cluster.hosts(), cluster.ranks_per_host()), (32, 4, 8));
/// assert_eq!(cluster.to_string(), "8x nvlink(450GB/s, 1us) per host, 4 hosts over 3200Gb/s, 5us");
///
/// let host = cluster.with_hosts(1)?;
/// let estimate = host.estimate(CollectiveKind::AllReduce, 450_000_000);
/// // 14 steps of 1 us, each with an eighth of the buffer.
/// assert_eq!(estimate.time, Duration::from_micros(14 * (1 + 125)));
/// assert_eq!(estimate.algorithm, CollectiveAlgorithm::Ring);
/// # Ok::<(), kiln::group::TopologyError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Topology {
    ranks_per_host: u32,
    host_link: HostLink,
    link: LinkSpeed,
    hosts: u32,
    network: Option<LinkSpeed>,
}

impl Topology {
    /// The number of ranks: one for each device.
    pub fn ranks(&self) -> u32 {
        self.hosts * self.ranks_per_host
    }

    /// The number of hosts.
    pub fn hosts(&self) -> u32 {
        self.hosts
    }

    /// The devices of one host.
    pub fn ranks_per_host(&self) -> u32 {
        self.ranks_per_host
    }

    /// How the devices of one host are connected.
    pub fn host_link(&self) -> HostLink {
        self.host_link
    }

    /// The connection of a device to the others of its host.
    pub fn link(&self) -> LinkSpeed {
        self.link
    }

    /// The connection of a host to the others; none if no network was given.
    pub fn network(&self) -> Option<LinkSpeed> {
        self.network
    }

    /// The same with another number of hosts.
    ///
    /// # Errors
    /// No host; several hosts without a network; more than 1,048,576 ranks.
    pub fn with_hosts(self, hosts: u32) -> Result<Self, TopologyError> {
        let ranks = u64::from(hosts) * u64::from(self.ranks_per_host);
        match (hosts, self.network) {
            (0, _) => Err(TopologyError::NoHosts),
            (2.., None) => Err(TopologyError::NoNetwork { hosts }),
            _ if ranks > u64::from(MAX_RANKS) => Err(TopologyError::TooManyRanks { ranks }),
            _ => Ok(Self { hosts, ..self }),
        }
    }

    /// The same with another number of ranks: on one host if they fit there, or on as many full hosts as they need.
    ///
    /// # Errors
    /// No rank; several hosts that would not be full. As for [`with_hosts`](Self::with_hosts).
    pub fn with_ranks(self, ranks: u32) -> Result<Self, TopologyError> {
        let per_host = self.ranks_per_host;
        match ranks {
            0 => Err(TopologyError::Ranks { ranks, per_host }),
            _ if ranks <= per_host => Self { ranks_per_host: ranks, ..self }.with_hosts(1),
            _ if ranks.is_multiple_of(per_host) => self.with_hosts(ranks / per_host),
            _ => Err(TopologyError::Ranks { ranks, per_host }),
        }
    }

    /// The connection of two ranks: that of their host, or the network; none for one and the same rank, or if there is no such rank.
    ///
    /// A simulated machine takes its links from here, so that copies and collectives of its devices take as long:
    ///
    /// ```
    /// use kiln::group::Topology;
    /// use kiln::sim::{DeviceConfig, DeviceLink, Links, Machine, MachineConfig};
    ///
    /// let topology: Topology = "2x nvlink(450GB/s) per host, 2 hosts over 400Gb/s".parse()?;
    /// let links = topology.pairs().fold(Links::none(), |links, (one, other, speed)| {
    ///     let link = DeviceLink { bytes_per_us: speed.bytes_per_us, latency_ns: speed.latency_ns };
    ///     links.with(one, other, link)
    /// });
    /// let devices = vec![DeviceConfig::default(); topology.ranks() as usize];
    /// let machine = Machine::new(MachineConfig { devices, ..MachineConfig::seeded(1) }.links(links));
    /// assert_eq!(machine.devices().len(), 4);
    /// # Ok::<(), kiln::group::TopologyError>(())
    /// ```
    pub fn between(&self, one: u32, other: u32) -> Option<LinkSpeed> {
        if one == other || one.max(other) >= self.ranks() {
            return None;
        }
        match one / self.ranks_per_host == other / self.ranks_per_host {
            true => Some(self.link),
            false => self.network,
        }
    }

    /// Every two ranks with their connection, the smaller rank first.
    pub fn pairs(&self) -> impl Iterator<Item = (u32, u32, LinkSpeed)> {
        let (topology, ranks) = (*self, self.ranks());
        (0..ranks).flat_map(move |one| {
            (one + 1..ranks).filter_map(move |other| Some((one, other, topology.between(one, other)?)))
        })
    }
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ranks_per_host, host_link, link, hosts, network } = self;
        let name = match host_link {
            HostLink::NvLink => "nvlink",
            HostLink::Pcie => "pcie",
        };
        write!(f, "{ranks_per_host}x {name}({link}) per host")?;
        match network {
            Some(network) => {
                let noun = if *hosts == 1 { "host" } else { "hosts" };
                let rate = written_rate(network.bytes_per_us * 8, "b/s");
                write!(f, ", {hosts} {noun} over {rate}, {}", network.latency())
            }
            None => Ok(()),
        }
    }
}
