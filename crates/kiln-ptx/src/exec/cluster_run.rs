//! Blocks of a cluster while they run.

use super::block::{Block, Cta};
use super::cluster::{BlockMemory, Cluster};
use super::deadlock_report::BlockWaits;
use super::fault::ExecFault;
use super::launch::Launch;
use super::warp::Warp;

impl<'l> Block<'l> {
    /// The blocks of a cluster, and what they share.
    pub(crate) fn of_cluster(launch: &'l Launch<'l>, number: u64) -> (Vec<Self>, Box<Cluster>) {
        let ranks = 0..launch.clusters.size() as usize;
        let mut blocks: Vec<Self> =
            ranks.map(|rank| Self::new(launch, launch.clusters.block(number, rank), None)).collect();
        let park = |block: &mut Self| {
            let mut memory = BlockMemory::default();
            block.cta.swap(&mut memory);
            memory
        };
        let memories = blocks.iter_mut().map(park).collect();
        let lanes = blocks.first().map_or(&[][..], |block| &block.cta.existing);
        let cluster = Box::new(Cluster::new(number, memories, lanes));
        (blocks, cluster)
    }

    /// The number of its cluster, and its rank there.
    pub(crate) fn place_in_cluster(&self) -> (u64, usize) {
        self.cta.place_in_cluster
    }

    /// Takes over its cluster, if it has one.
    pub(crate) fn enter_cluster(&mut self, cluster: Option<Box<Cluster>>) {
        if let Some(cluster) = cluster {
            self.cta.enter_cluster(cluster);
        }
    }

    /// Gives it back.
    pub(crate) fn leave_cluster(&mut self) -> Option<Box<Cluster>> {
        self.cta.leave_cluster()
    }

    /// Whether a thread does not wait at a barrier.
    pub(crate) fn has_ready_thread(&self) -> bool {
        self.warps.iter().any(|warp| warp.ready_thread().is_some())
    }

    /// Words for what its threads wait for.
    pub(crate) fn waiting(&self) -> BlockWaits {
        self.cta.waiting(&self.warps)
    }

    /// Keeps a finding about the threads of its cluster, of which none can go on.
    pub(crate) fn report_stuck_cluster(&self, text: String, first: &BlockWaits) -> ExecFault {
        self.cta.report_waiting(text, first)
    }

    /// Whether threads wait for other blocks of the cluster.
    pub(super) fn waits_for_cluster(&self) -> bool {
        self.cta.is_clustered() && self.warps.iter().any(Warp::waits_for_cluster)
    }

    /// Lets threads go on that waited at the barrier of the cluster.
    pub(super) fn release_from_cluster(&mut self) -> bool {
        if !self.cta.is_clustered() {
            return false;
        }
        self.warps.iter_mut().fold(false, |any, warp| warp.release_from_cluster(&mut self.cta) | any)
    }
}

impl Cta<'_> {
    /// Counts a change of an `mbarrier` object.
    pub(crate) fn note_mbarrier_change(&mut self) {
        self.mbarriers.change();
        if let Some(cluster) = &mut self.cluster {
            cluster.note_event();
        }
    }
}
