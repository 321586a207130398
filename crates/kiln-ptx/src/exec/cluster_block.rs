//! A block as a member of its cluster: whose shared memory an address means, visits, and the barrier.

use super::block::Cta;
use super::cluster::{BlockMemory, Cluster};
use super::finding::{AccessKind, BadAccess, ExecFindingKind};
use super::lowered_code::ClusterBarrier;
use super::memory::generic_address::{
    Place, cluster_rank, in_window, is_outside_cluster, outside_rank, owner_of, shared_window,
};

/// Whose shared memory an address means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Own,
    /// The block of the cluster with this rank.
    Peer(usize),
    /// A rank that the cluster does not have.
    Outside(u64),
    /// A block of another cluster.
    Foreign,
}

/// What a thread must do that leaves a cluster whose memory is still used.
const MEET_BEFORE_EXIT: &str = "let all blocks of the cluster meet (`cluster.sync()`, `barrier.cluster`) behind the last access to each other's shared \
                                memory, before any of them exits";

impl Cta<'_> {
    /// Whether the block runs in a cluster.
    #[inline(always)]
    pub(crate) fn is_clustered(&self) -> bool {
        self.launch.clustered
    }

    /// Its rank in its cluster.
    pub(crate) fn rank(&self) -> usize {
        self.place_in_cluster.1
    }

    /// The number of the block in the grid with a rank in this cluster.
    pub(crate) fn block_of_rank(&self, rank: usize) -> u64 {
        self.launch.clusters.block(self.place_in_cluster.0, rank)
    }

    /// Whose memory an address means, and where in it: an address of `.shared::cluster`, or a generic one of shared memory.
    pub(crate) fn owner(&self, place: Place, address: u64) -> (Owner, u64) {
        let of_rank = |rank: u64| match usize::try_from(rank) {
            Ok(rank) if rank == self.rank() => Owner::Own,
            Ok(rank) if (rank as u64) < self.launch.clusters.size() => Owner::Peer(rank),
            _ => Owner::Outside(rank),
        };
        if place == Place::Cluster {
            let (rank, within) = cluster_rank(address);
            return (rank.map_or(Owner::Own, of_rank), within);
        }
        if let Some(within) = in_window(address, self.shared_window) {
            return (Owner::Own, within);
        }
        if is_outside_cluster(address) {
            let (rank, within) = outside_rank(address);
            return (Owner::Outside(rank), within);
        }
        let clusters = &self.launch.clusters;
        let number = owner_of(address, self.launch.shape.blocks())
            .filter(|number| self.is_clustered() && clusters.place(*number).0 == self.place_in_cluster.0);
        match number {
            Some(number) => {
                let within = in_window(address, shared_window(number)).unwrap_or(address & 0xffff_ffff);
                (Owner::Peer(clusters.place(number).1), within)
            }
            None => (Owner::Foreign, address & 0xffff_ffff),
        }
    }

    /// Lets everything that looks at shared memory look at that of another block of the cluster, or at its own again.
    pub(crate) fn visit(&mut self, rank: Option<usize>) {
        if self.visited == rank {
            return;
        }
        let Some(mut cluster) = self.cluster.take() else { return };
        for at in [std::mem::replace(&mut self.visited, rank), rank].into_iter().flatten() {
            if let Some(memory) = cluster.memories.get_mut(at) {
                self.swap(memory);
            }
        }
        self.cluster = Some(cluster);
        let owner = rank.map_or(self.number, |rank| self.block_of_rank(rank));
        if let Some(races) = &mut self.races {
            races.window = Some(shared_window(owner));
        }
    }

    /// Exchanges the memory of the block for another one.
    pub(crate) fn swap(&mut self, memory: &mut BlockMemory) {
        std::mem::swap(&mut self.shared, &mut memory.shared);
        std::mem::swap(&mut self.origins, &mut memory.origins);
        std::mem::swap(&mut self.mbarriers, &mut memory.mbarriers);
        if let Some(races) = &mut self.races {
            std::mem::swap(&mut races.copies, &mut memory.copies);
        }
    }

    /// Takes the cluster over, with the memory of the block in it.
    pub(crate) fn enter_cluster(&mut self, mut cluster: Box<Cluster>) {
        if let Some(memory) = cluster.memories.get_mut(self.rank()) {
            self.swap(memory);
        }
        self.cluster = Some(cluster);
    }

    /// Gives it back.
    pub(crate) fn leave_cluster(&mut self) -> Option<Box<Cluster>> {
        self.visit(None);
        let mut cluster = self.cluster.take()?;
        if let Some(memory) = cluster.memories.get_mut(self.rank()) {
            self.swap(memory);
        }
        Some(cluster)
    }

    /// Threads of a warp arrive at the barrier of the cluster.
    pub(crate) fn arrive_at_cluster(&mut self, warp: usize, lanes: u32, pc: u32, step: ClusterBarrier) {
        let rank = self.rank();
        let clock = self.races.as_mut().and_then(|races| races.clocks.bring(warp, lanes, step.orders));
        self.changes += 1;
        let Some(cluster) = &mut self.cluster else { return };
        let fault = cluster.arrive((rank, warp), lanes, pc, clock.as_ref());
        if !self.launch.options.checks.barriers {
            return;
        }
        if fault.twice != 0 {
            let text = "threads arrive at the barrier of the cluster again and have not waited since they arrived; put a `barrier.cluster.wait` \
                        between two arrivals";
            self.report_barrier(warp, fault.twice, pc, text.to_owned());
        }
        if let Some(other) = fault.elsewhere.filter(|_| step.aligned) {
            let other = self.line_of(other);
            let text = format!(
                "lanes of one warp arrive at the barrier of the cluster here and at {other}, and the barrier is `.aligned`; let all threads of the \
                 warp execute one `barrier.cluster.arrive`"
            );
            self.report_barrier(warp, lanes, pc, text);
        }
    }

    /// Reports threads that wait at the barrier of the cluster and have not arrived; those that have.
    pub(crate) fn waiting_at_cluster(&mut self, warp: usize, lanes: u32, pc: u32) -> u32 {
        let rank = self.rank();
        let Some(cluster) = &self.cluster else { return 0 };
        let wrong = cluster.without_arrival((rank, warp), lanes);
        if wrong != 0 && self.launch.options.checks.barriers {
            let text = "threads wait at the barrier of the cluster and have not arrived at it; put a `barrier.cluster.arrive` before each \
                        `barrier.cluster.wait`";
            self.report_barrier(warp, wrong, pc, text.to_owned());
        }
        lanes & !wrong
    }

    /// Lets lanes go on behind the barrier of the cluster, if it is complete.
    pub(crate) fn pass_cluster(&mut self, warp: usize, lanes: u32) -> bool {
        let rank = self.rank();
        let Some(cluster) = &mut self.cluster else { return true };
        if !cluster.is_complete((rank, warp), lanes) {
            return false;
        }
        let clock = cluster.pass((rank, warp), lanes);
        if let (Some(races), Some(clock)) = (&mut self.races, clock) {
            races.clocks.take_over(warp, lanes, &clock);
        }
        true
    }

    /// All threads have exited: from now on the memory of the block is gone, and every access of other blocks must have come before that.
    pub(crate) fn end_in_cluster(&mut self) {
        let (rank, end) = (self.rank(), self.shared.len());
        if let Some(cluster) = &mut self.cluster {
            cluster.end_block(rank);
        }
        let (window, number) = (self.shared_window, self.number);
        let Some(races) = self.races.as_mut().filter(|_| self.launch.clusters.size() > 1) else { return };
        let found = races.touch_exit(window, end);
        let warps = races.launch.warps_per_block().max(1);
        for (conflict, address) in found {
            if conflict.earlier_warp / warps == number {
                continue;
            }
            let bytes = self.launch.code.access_bytes(conflict.pc);
            let access = self.access_in(number, (conflict.earlier.access(), bytes), address - window);
            let owner = self.block_words(number);
            let near = format!(
                "in the shared memory of {owner}, which may exit before: nothing makes its threads wait for this access; {MEET_BEFORE_EXIT}"
            );
            let kind = ExecFindingKind::UseAfterFree(BadAccess { near, ..access });
            self.report_in_grid(conflict.pc, conflict.earlier_warp, conflict.earlier_lane, kind);
        }
    }

    /// Words for an access to the memory of a block that has exited.
    pub(crate) fn exited_words(&self, rank: usize) -> String {
        let owner = self.block_words(self.block_of_rank(rank));
        format!("in the shared memory of {owner}, all threads of which have exited; {MEET_BEFORE_EXIT}")
    }

    /// Words for a rank that the cluster does not have.
    pub(crate) fn outside_words(&self, rank: u64) -> String {
        let size = self.launch.clusters.size();
        let (s, last) = if size == 1 {
            ("", "its rank is 0".to_owned())
        } else {
            ("s", format!("ranks 0 to {}", size - 1))
        };
        format!(
            "in the shared memory of rank {rank} of the cluster, which has {size} block{s}, {last}: compare the rank with the size of the cluster \
             (`cluster.num_blocks()`, `%cluster_nctarank`) before the access, and launch with clusters of the size that the kernel needs"
        )
    }

    fn access_in(&self, block: u64, (access, bytes): (AccessKind, u32), address: u64) -> BadAccess {
        BadAccess {
            access,
            memory: Place::Shared.name(),
            address,
            bytes,
            near: String::new(),
            within: String::new(),
            base: None,
            mistake: None,
            block: Some(self.launch.block_index(block)),
        }
    }

    fn block_words(&self, number: u64) -> String {
        let [x, y, z] = self.launch.block_index(number);
        format!("block ({x},{y},{z})")
    }

    fn report_barrier(&self, warp: usize, lanes: u32, pc: u32, text: String) {
        let lane = lanes.trailing_zeros() as usize & 31;
        self.report(warp, lane, pc, ExecFindingKind::Barrier(text));
    }
}
