//! How long collectives take over a topology.
//!
//! The cost model is the one that NCCL chooses its algorithms by: latency times steps, and bytes by bandwidth. Let `p` be the ranks, `h` the hosts, `g = p / h` the
//! ranks of a host, `B` the bytes of the buffer, `l` and `b` latency and rate of a link in a host, `L` and `R` those of a host's network, and `s = min(b, R)` for several
//! hosts, `s = b` for one. `B` is the larger of the two buffers: for all-gather, reduce-scatter, gather, scatter and all-to-all it has one block for each rank.
//!
//! One pass around a ring has `p - 1` steps, `n = min(h, p - 1)` of them over the network if there are several hosts: `ring = (p - 1 - n) l + n L`.
//! One pass through a tree goes along the ranks of a host and through a binary tree of hosts: `tree = (g - 1) l + ceil(log2 h) L`.
//!
//! | collective | ring | tree | hierarchical (several hosts, several ranks on each) |
//! |---|---|---|---|
//! | all-reduce | `2 ring + 2 (p-1)/p B/s` | `2 tree + 2 B/s` | twice that of all-gather |
//! | all-gather, reduce-scatter | `ring + (p-1)/p B/s` | | `(g-1) (l + B/g/b) + (h-1) (L + B/h/R)` |
//! | broadcast, reduce | `ring + B/s` | `tree + B/s` | |
//! | barrier | `2 ring` | `2 tree` | |
//!
//! All-to-all, gather, scatter, send and receive go directly from rank to rank. Messages inside of a host and between hosts pass side by side:
//!
//! | collective | time |
//! |---|---|
//! | all-to-all | `(g-1) l + (h-1) L + max((g-1)/p B/b, g (p-g)/p B/R)`: the ranks of a host share its network |
//! | gather, scatter | `max(l, L) + max((g-1)/p B/b, (p-g)/p B/R)`: the root is the bottleneck |
//! | send, receive | `L + B/s` between hosts, `l + B/b` in one |
//!
//! What it does not know: the protocols of NCCL for small messages, reductions in the switch (NVLink SHARP), the time of the kernels, congestion.

use std::fmt;
use std::time::Duration;

use kiln_operation::CollectiveKind;

use super::Topology;
use super::link_speed::LinkSpeed;

/// How a collective passes its data on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum CollectiveAlgorithm {
    /// Around all ranks.
    Ring,
    /// Along the ranks of a host and through a binary tree of hosts.
    Tree,
    /// A ring in each host, and rings between ranks of the same number in all hosts.
    Hierarchical,
    /// From rank to rank.
    Direct,
}

impl fmt::Display for CollectiveAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ring => "ring",
            Self::Tree => "tree",
            Self::Hierarchical => "hierarchical",
            Self::Direct => "direct",
        })
    }
}

/// How long a collective takes with one algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CollectiveEstimate {
    /// The algorithm.
    pub algorithm: CollectiveAlgorithm,
    /// The time from the last rank's call to the end on all ranks.
    pub time: Duration,
}

/// The numbers of the formulas, with times in nanoseconds.
struct Terms {
    p: f64,
    g: f64,
    h: f64,
    bytes: f64,
    link: LinkSpeed,
    network: Option<LinkSpeed>,
}

impl Topology {
    /// The estimate of the fastest algorithm for a collective whose larger buffer has so many bytes. One rank alone takes no time.
    pub fn estimate(&self, kind: CollectiveKind, bytes: u64) -> CollectiveEstimate {
        let none = CollectiveEstimate { algorithm: CollectiveAlgorithm::Direct, time: Duration::ZERO };
        self.estimates(kind, bytes).into_iter().min_by_key(|estimate| estimate.time).unwrap_or(none)
    }

    /// The estimates of all algorithms that a collective has here; none for one rank.
    pub fn estimates(&self, kind: CollectiveKind, bytes: u64) -> Vec<CollectiveEstimate> {
        use CollectiveAlgorithm::{Direct, Hierarchical, Ring, Tree};
        if self.ranks() == 1 {
            return Vec::new();
        }
        let terms = Terms {
            p: f64::from(self.ranks()),
            g: f64::from(self.ranks_per_host()),
            h: f64::from(self.hosts()),
            bytes: bytes as f64,
            link: self.link(),
            network: self.network().filter(|_| self.hosts() > 1),
        };
        let share = (terms.p - 1.0) / terms.p * terms.bytes;
        let (ring, tree) = (terms.ring_ns(), terms.tree_ns());
        let slowest = |bytes: f64| bytes / terms.slowest();
        let hierarchical = |passes: f64| terms.hierarchical_ns().map(|ns| (Hierarchical, passes * ns));
        let times: Vec<(CollectiveAlgorithm, f64)> = match kind {
            CollectiveKind::AllReduce => {
                let flat =
                    [(Ring, 2.0 * (ring + slowest(share))), (Tree, 2.0 * (tree + slowest(terms.bytes)))];
                flat.into_iter().chain(hierarchical(2.0)).collect()
            }
            CollectiveKind::AllGather | CollectiveKind::ReduceScatter => {
                [(Ring, ring + slowest(share))].into_iter().chain(hierarchical(1.0)).collect()
            }
            CollectiveKind::Broadcast | CollectiveKind::Reduce => {
                vec![(Ring, ring + slowest(terms.bytes)), (Tree, tree + slowest(terms.bytes))]
            }
            CollectiveKind::Barrier => vec![(Ring, 2.0 * ring), (Tree, 2.0 * tree)],
            CollectiveKind::AllToAll => vec![(Direct, terms.all_to_all_ns())],
            CollectiveKind::Gather | CollectiveKind::Scatter => vec![(Direct, terms.rooted_ns())],
            CollectiveKind::Send | CollectiveKind::Recv => {
                vec![(Direct, terms.far_latency() + slowest(terms.bytes))]
            }
        };
        let estimate = |(algorithm, ns): (CollectiveAlgorithm, f64)| CollectiveEstimate {
            algorithm,
            time: Duration::from_nanos(ns.round() as u64),
        };
        times.into_iter().map(estimate).collect()
    }
}

impl Terms {
    /// Bytes in a nanosecond over the slowest connection.
    fn slowest(&self) -> f64 {
        let link = rate(self.link);
        self.network.map_or(link, |network| link.min(rate(network)))
    }

    fn far_latency(&self) -> f64 {
        self.network.unwrap_or(self.link).latency_ns as f64
    }

    fn ring_ns(&self) -> f64 {
        let far = if self.network.is_some() { self.h.min(self.p - 1.0) } else { 0.0 };
        (self.p - 1.0 - far) * self.link.latency_ns as f64 + far * self.far_latency()
    }

    fn tree_ns(&self) -> f64 {
        let depth = self.h.log2().ceil();
        (self.g - 1.0) * self.link.latency_ns as f64 + depth * self.far_latency()
    }

    /// One pass: of all-gather or reduce-scatter.
    fn hierarchical_ns(&self) -> Option<f64> {
        let network = self.network.filter(|_| self.g > 1.0)?;
        let near = (self.g - 1.0) * (self.link.latency_ns as f64 + self.bytes / self.g / rate(self.link));
        let far = (self.h - 1.0) * (network.latency_ns as f64 + self.bytes / self.h / rate(network));
        Some(near + far)
    }

    fn all_to_all_ns(&self) -> f64 {
        let block = self.bytes / self.p;
        let near = (self.g - 1.0) * block / rate(self.link);
        let far = self.network.map_or(0.0, |network| self.g * (self.p - self.g) * block / rate(network));
        let far_latency = self.network.map_or(0.0, |network| (self.h - 1.0) * network.latency_ns as f64);
        (self.g - 1.0) * self.link.latency_ns as f64 + far_latency + near.max(far)
    }

    fn rooted_ns(&self) -> f64 {
        let block = self.bytes / self.p;
        let near = (self.g - 1.0) * block / rate(self.link);
        let far = self.network.map_or(0.0, |network| (self.p - self.g) * block / rate(network));
        self.far_latency().max(self.link.latency_ns as f64) + near.max(far)
    }
}

fn rate(speed: LinkSpeed) -> f64 {
    speed.bytes_per_us as f64 / 1_000.0
}
