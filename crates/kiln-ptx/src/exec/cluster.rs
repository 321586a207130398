//! A cluster: blocks that are resident together, meet at a barrier and reach each other's shared memory.
//!
//! One host thread runs all blocks of a cluster. While one of them runs it holds the cluster, and in it the memories of the others. A thread that reaches
//! the shared memory of another block *visits* it: the memories change places, so that everything which looks at shared memory looks at that block's.

use std::sync::Arc;

use super::check::{Clock, Copies, joined_options};
use super::mbarrier_table::MbarrierTable;
use super::memory::Shared;
use super::undefined::OriginNotes;

/// What belongs to the shared memory of a block.
#[derive(Default)]
pub(crate) struct BlockMemory {
    pub(crate) shared: Shared,
    pub(crate) origins: OriginNotes,
    pub(crate) mbarriers: MbarrierTable,
    pub(crate) copies: Copies,
}

/// How the threads of a warp take part in the barrier of the cluster.
#[derive(Clone, Copy, Default)]
struct WarpState {
    /// The lanes that have not exited.
    live: u32,
    /// Those that have arrived in this phase.
    arrived: u32,
    /// Those that have arrived and not waited since.
    owing: u32,
    /// Where the first of them arrived in this phase.
    place: Option<u32>,
}

/// A block of the cluster.
struct Member {
    warps: Vec<WarpState>,
    has_exited: bool,
    /// Set when none of its threads could go on: how much had happened in the cluster until then.
    stuck: Option<u64>,
}

/// The state of a cluster that its blocks share.
pub(crate) struct Cluster {
    pub(crate) number: u64,
    /// By rank.
    pub(crate) memories: Vec<BlockMemory>,
    members: Vec<Member>,
    /// What happened before the arrivals of this phase, and before those of the last complete one.
    gathering: Option<Arc<Clock>>,
    complete: Option<Arc<Clock>>,
    /// How often something happened that another block may wait for.
    events: u64,
}

/// What threads that arrive did wrong.
#[derive(Clone, Copy, Default)]
pub(crate) struct ArrivalFault {
    /// Lanes that arrived again before they waited.
    pub(crate) twice: u32,
    /// Where other lanes of the warp arrived in this phase, if not here.
    pub(crate) elsewhere: Option<u32>,
}

impl Cluster {
    /// A cluster of blocks with these lanes in their warps.
    pub(crate) fn new(number: u64, memories: Vec<BlockMemory>, lanes: &[u32]) -> Self {
        let warps: Vec<WarpState> =
            lanes.iter().map(|live| WarpState { live: *live, ..WarpState::default() }).collect();
        let member = || Member { warps: warps.clone(), has_exited: false, stuck: None };
        let members = memories.iter().map(|_| member()).collect();
        Self { number, memories, members, gathering: None, complete: None, events: 0 }
    }

    /// Something happened that another block may wait for.
    pub(crate) fn note_event(&mut self) {
        self.events += 1;
    }

    /// Threads arrive at the barrier; `clock` is what they release.
    pub(crate) fn arrive(
        &mut self,
        (rank, warp): (usize, usize),
        lanes: u32,
        pc: u32,
        clock: Option<&Arc<Clock>>,
    ) -> ArrivalFault {
        let Some(state) = self.members.get_mut(rank).and_then(|member| member.warps.get_mut(warp)) else {
            return ArrivalFault::default();
        };
        let twice = lanes & state.owing;
        let elsewhere = state.place.filter(|place| *place != pc);
        state.place.get_or_insert(pc);
        state.arrived |= lanes;
        state.owing |= lanes;
        self.gathering = joined_options(self.gathering.as_ref(), clock);
        self.advance();
        ArrivalFault { twice, elsewhere }
    }

    /// Lanes that wait and have not arrived before.
    pub(crate) fn without_arrival(&self, (rank, warp): (usize, usize), lanes: u32) -> u32 {
        lanes & !self.state(rank, warp).owing
    }

    /// Whether lanes that have arrived may go on.
    pub(crate) fn is_complete(&self, (rank, warp): (usize, usize), lanes: u32) -> bool {
        lanes & self.state(rank, warp).arrived == 0
    }

    /// Lanes go on; what they are ordered behind from now on.
    pub(crate) fn pass(&mut self, (rank, warp): (usize, usize), lanes: u32) -> Option<Arc<Clock>> {
        if let Some(state) = self.members.get_mut(rank).and_then(|member| member.warps.get_mut(warp)) {
            state.owing &= !lanes;
        }
        self.complete.clone()
    }

    /// Threads of a warp have exited: they count as arrived.
    pub(crate) fn leave(&mut self, (rank, warp): (usize, usize), live: u32) {
        if let Some(state) = self.members.get_mut(rank).and_then(|member| member.warps.get_mut(warp)) {
            state.live = live;
        }
        self.advance();
    }

    /// How many threads have arrived in this phase, of those that have not exited.
    pub(crate) fn arrivals(&self) -> (u32, u32) {
        let warps = || self.members.iter().flat_map(|member| &member.warps);
        let arrived = warps().map(|warp| (warp.arrived & warp.live).count_ones()).sum();
        (arrived, warps().map(|warp| warp.live.count_ones()).sum())
    }

    /// All threads of a block have exited.
    pub(crate) fn end_block(&mut self, rank: usize) {
        if let Some(member) = self.members.get_mut(rank) {
            member.has_exited = true;
        }
        self.events += 1;
    }

    pub(crate) fn has_exited(&self, rank: usize) -> bool {
        self.members.get(rank).is_some_and(|member| member.has_exited)
    }

    /// Whether all blocks have ended.
    pub(crate) fn is_done(&self) -> bool {
        self.members.iter().all(|member| member.has_exited)
    }

    /// No thread of a block can go on until something happens in another block.
    pub(crate) fn set_stuck(&mut self, rank: usize) {
        let events = self.events;
        if let Some(member) = self.members.get_mut(rank) {
            member.stuck = Some(events);
        }
    }

    /// Whether that holds for all blocks that have not ended, and nothing has happened since.
    pub(crate) fn is_stuck(&self) -> bool {
        let waits = |member: &Member| member.has_exited || member.stuck == Some(self.events);
        !self.is_done() && self.members.iter().all(waits)
    }

    fn state(&self, rank: usize, warp: usize) -> WarpState {
        self.members.get(rank).and_then(|member| member.warps.get(warp)).copied().unwrap_or_default()
    }

    /// Ends the phase if all threads have arrived.
    fn advance(&mut self) {
        self.events += 1;
        let warps = || self.members.iter().flat_map(|member| &member.warps);
        if !warps().any(|warp| warp.arrived != 0) || warps().any(|warp| warp.live & !warp.arrived != 0) {
            return;
        }
        self.complete = self.gathering.take();
        for warp in self.members.iter_mut().flat_map(|member| &mut member.warps) {
            (warp.arrived, warp.place) = (0, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster() -> Cluster {
        let memories = (0..2).map(|_| BlockMemory::default()).collect();
        Cluster::new(0, memories, &[3])
    }

    #[test]
    fn a_phase_ends_when_all_threads_have_arrived_or_exited() {
        let mut cluster = cluster();
        cluster.arrive((0, 0), 3, 7, None);
        assert!(!cluster.is_complete((0, 0), 3) && cluster.arrivals() == (2, 4));
        cluster.arrive((1, 0), 1, 7, None);
        assert!(!cluster.is_complete((0, 0), 3));
        cluster.leave((1, 0), 1);
        assert!(cluster.is_complete((0, 0), 3) && cluster.is_complete((1, 0), 1));
    }

    #[test]
    fn a_second_arrival_without_a_wait_is_told() {
        let mut cluster = cluster();
        assert_eq!(cluster.without_arrival((0, 0), 3), 3);
        assert_eq!(cluster.arrive((0, 0), 1, 7, None).twice, 0);
        let fault = cluster.arrive((0, 0), 3, 8, None);
        assert_eq!((fault.twice, fault.elsewhere), (1, Some(7)));
        cluster.arrive((1, 0), 3, 7, None);
        cluster.pass((0, 0), 3);
        assert_eq!(cluster.arrive((0, 0), 3, 9, None).twice, 0);
    }

    #[test]
    fn a_cluster_is_stuck_when_nothing_happened_since_all_blocks_were() {
        let mut cluster = cluster();
        cluster.set_stuck(0);
        cluster.note_event();
        cluster.set_stuck(1);
        assert!(!cluster.is_stuck());
        cluster.set_stuck(0);
        assert!(cluster.is_stuck());
        cluster.end_block(1);
        assert!(!cluster.is_stuck());
    }
}
