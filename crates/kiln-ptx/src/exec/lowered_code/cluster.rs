//! Steps of clusters.

use super::*;

/// `mapa`, `getctarank`, and `cvta` of `.shared::cluster`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClusterAddress {
    pub(crate) mapping: ClusterMapping,
    /// Whether the address is generic, and not one of `.shared::cluster`.
    pub(crate) generic: bool,
    pub(crate) to: Reg,
    pub(crate) address: Source,
    /// The block, where one is named.
    pub(crate) rank: Source,
}

/// What is made of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClusterMapping {
    /// The same place in the memory of another block.
    Map,
    /// The rank of the block whose memory it is.
    Rank,
    /// The other kind of address for the same place.
    Convert,
}

/// `barrier.cluster`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClusterBarrier {
    /// Whether threads arrive; otherwise they wait.
    pub(crate) arrives: bool,
    /// Whether an arrival releases what came before.
    pub(crate) orders: bool,
    /// Whether all threads of a warp must execute the same one.
    pub(crate) aligned: bool,
}

impl Code {
    /// Bytes that a step accesses; 0 if it reaches no memory.
    pub(crate) fn access_bytes(&self, step: u32) -> u32 {
        match self.steps.get(step as usize).map(|step| &step.op) {
            Some(Op::Load(load)) => load.bytes * load.to.len() as u32,
            Some(Op::Store(store)) => store.bytes * store.from.len() as u32,
            Some(Op::Atomic(atomic)) => atomic.bytes,
            Some(Op::Mbarrier(_)) => 8,
            Some(Op::BulkCopy(_) | Op::TensorCopy(_)) => 16,
            _ => 0,
        }
    }

    /// Whether the blocks of a launch must run as clusters, also if each has one block.
    pub(crate) fn meets_in_clusters(&self) -> bool {
        self.steps.iter().any(|step| matches!(step.op, Op::ClusterBarrier(_)))
    }
}
