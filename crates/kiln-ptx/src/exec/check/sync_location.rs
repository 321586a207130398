//! Places that threads synchronise at: what was released there and is passed on to those who acquire it.
//!
//! A strong write after a fence, or with release semantics, leaves the clock of its thread at its place. Atomic updates pass on what they
//! find; a strong store starts again. A strong read takes what is there, at once if it acquires, else at the next fence. Both sides must
//! name a scope that includes the other: inside a block any scope does, between blocks that of the device or the system.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::published::Flags;
use super::race_rule::{RaceRule, Rules};
use super::vector_clock::{Clock, joined, joined_options};

/// What a strong write leaves behind.
#[derive(Clone, Default)]
pub(crate) struct Released {
    /// For threads of the same block.
    pub(crate) narrow: Option<Arc<Clock>>,
    /// For all threads.
    pub(crate) wide: Option<Arc<Clock>>,
    /// Whether the write itself releases.
    pub(crate) at_once: bool,
}

/// What a strong read finds.
#[derive(Clone, Default)]
pub(crate) struct Acquired {
    pub(crate) narrow: Option<Arc<Clock>>,
    pub(crate) wide: Option<Arc<Clock>>,
}

impl Acquired {
    /// Whether nothing was released there.
    pub(crate) fn is_empty(&self) -> bool {
        self.narrow.is_none() && self.wide.is_none()
    }
}

#[derive(Default)]
struct Location {
    /// By block.
    narrow: Vec<(u64, Arc<Clock>)>,
    wide: Option<Arc<Clock>>,
    /// By cluster.
    clusters: Vec<(u64, Arc<Clock>)>,
    /// The last thread whose write itself released, and what: its later strong writes here pass that on.
    releaser: Option<(u64, Released)>,
}

/// The thread of a strong access.
#[derive(Clone, Copy)]
pub(crate) struct Party {
    pub(crate) block: u64,
    /// A number of the thread in the grid.
    pub(crate) thread: u64,
    /// Whether the scope of the access reaches beyond the cluster.
    pub(crate) wide: bool,
    /// The number of the cluster, if the scope includes it and the launch has clusters.
    pub(crate) cluster: Option<u64>,
}

impl Party {
    /// Whether the scope reaches beyond the block.
    pub(crate) fn is_wide(&self) -> bool {
        self.wide || self.cluster.is_some()
    }
}

/// The places of one memory.
#[derive(Default)]
pub(crate) struct Locations {
    map: HashMap<u64, Location>,
    /// What came before the strong writes there, where threads wait.
    pub(crate) flags: Flags,
}

impl Locations {
    /// Forgets what was released in memory that is not used again.
    pub(super) fn forget(&mut self, memory: Range<u64>) {
        self.map.retain(|address, _| !memory.contains(address));
    }

    /// A strong read.
    pub(crate) fn read(&self, address: u64, party: Party, rules: Rules) -> Acquired {
        let Some(location) = self.map.get(&address) else { return Acquired::default() };
        let own = location.narrow.iter().find(|(block, _)| *block == party.block).map(|(_, clock)| clock);
        let wide = location.wide.as_ref().filter(|_| party.wide || !rules.has(RaceRule::OrderScope));
        let near = party.cluster.and_then(|cluster| location.clusters.iter().find(|(of, _)| *of == cluster));
        Acquired { narrow: own.cloned(), wide: joined_options(wide, near.map(|(_, clock)| clock)) }
    }

    /// A strong write; `updates` if it is one step with a read.
    pub(crate) fn write(
        &mut self,
        address: u64,
        party: Party,
        mut released: Released,
        updates: bool,
        rules: Rules,
    ) {
        let nothing = released.narrow.is_none() && released.wide.is_none();
        if nothing && !self.map.contains_key(&address) {
            return;
        }
        let location = self.map.entry(address).or_default();
        if !updates && rules.has(RaceRule::StoreBreaksChain) || !rules.has(RaceRule::UpdateChain) {
            location.narrow.clear();
            location.clusters.clear();
            location.wide = None;
        } else if !party.wide && rules.has(RaceRule::OrderScope) {
            location.wide = None;
            location.narrow.retain(|(block, _)| *block == party.block);
            location.clusters.retain(|(cluster, _)| Some(*cluster) == party.cluster);
        }
        match &location.releaser {
            Some((thread, earlier)) if *thread == party.thread => {
                released.narrow = joined_options(released.narrow.as_ref(), earlier.narrow.as_ref());
                released.wide = joined_options(released.wide.as_ref(), earlier.wide.as_ref());
            }
            _ => {}
        }
        if released.at_once {
            location.releaser = Some((party.thread, released.clone()));
        }
        if let Some(clock) = released.narrow {
            join_entry(&mut location.narrow, party.block, &clock);
        }
        if let (Some(cluster), Some(clock)) = (party.cluster, &released.wide) {
            join_entry(&mut location.clusters, cluster, clock);
        }
        if party.wide || !rules.has(RaceRule::OrderScope) {
            location.wide = joined_options(location.wide.as_ref(), released.wide.as_ref());
        }
    }
}

fn join_entry(entries: &mut Vec<(u64, Arc<Clock>)>, of: u64, clock: &Arc<Clock>) {
    match entries.iter_mut().find(|(known, _)| *known == of) {
        Some((_, known)) => *known = joined(known, clock),
        None => entries.push((of, Arc::clone(clock))),
    }
}
