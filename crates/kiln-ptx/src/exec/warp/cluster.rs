//! Threads of a cluster: its barrier, and addresses in the shared memory of its blocks.

use super::access::Access;
use super::lane_group::{LaneGroup, State};
use super::{Done, Flow, Trouble, Warp};
use crate::exec::block::Cta;
use crate::exec::cluster_block::Owner;
use crate::exec::finding::ExecFindingKind;
use crate::exec::lowered_code::{ClusterAddress, ClusterBarrier, ClusterMapping};
use crate::exec::memory::generic_address::{Place, cluster_address, outside_cluster, shared_window};
use crate::exec::warp_register::{Column, LANES, each, first_lane, lanes_where};

impl Warp {
    pub(super) fn cluster_barrier(&mut self, cta: &mut Cta<'_>, at: usize, step: ClusterBarrier) -> Flow {
        let LaneGroup { mask, pc, .. } = self.lane_groups[at];
        if step.arrives {
            cta.arrive_at_cluster(self.index, mask, pc, step);
            return Flow::Next;
        }
        let waiting = cta.waiting_at_cluster(self.index, mask, pc);
        if cta.pass_cluster(self.index, waiting) {
            return Flow::Next;
        }
        self.lane_groups[at].state = State::Cluster;
        Flow::Switch
    }

    /// Lets lane groups go on that waited at the barrier of the cluster, if it is complete.
    pub(crate) fn release_from_cluster(&mut self, cta: &mut Cta<'_>) -> bool {
        let mut released = false;
        for group in self.lane_groups.iter_mut().filter(|group| group.state == State::Cluster) {
            if cta.pass_cluster(self.index, group.mask) {
                (group.state, group.repeats) = (State::Ready, None);
                group.pc += 1;
                released = true;
            }
        }
        released
    }

    /// Whether threads wait for other blocks of the cluster.
    pub(crate) fn waits_for_cluster(&self) -> bool {
        self.lane_groups.iter().any(|group| group.state == State::Cluster || group.phase_wait.is_some())
    }

    /// The lanes that reach the same shared memory as the first of them; their addresses become addresses in it, and the block visits it.
    pub(super) fn resolve_shared(
        &self,
        cta: &mut Cta<'_>,
        at: usize,
        access: &mut Access,
        place: Place,
        addresses: &mut Column,
        lanes: u32,
    ) -> Done<u32> {
        let lane = first_lane(lanes);
        let is_shared = |address: u64| place == Place::Cluster || Place::at(address) == Place::Shared;
        let (owner, _) = cta.owner(place, addresses[lane]);
        let group = lanes_where(lanes, |lane| {
            is_shared(addresses[lane]) && cta.owner(place, addresses[lane]).0 == owner
        });
        (access.place, access.halves, access.block) = (Place::Shared, None, None);
        if owner == Owner::Foreign {
            cta.visit(None);
            self.enter_windows(cta, at, access, addresses, group);
            return Ok(group);
        }
        each(group, |lane| addresses[lane] = cta.owner(place, addresses[lane]).1);
        let near = match owner {
            Owner::Outside(rank) => Some(cta.outside_words(rank)),
            Owner::Peer(rank) => {
                access.block = Some(cta.launch.block_index(cta.block_of_rank(rank)));
                let has_exited = cta.cluster.as_ref().is_some_and(|cluster| cluster.has_exited(rank));
                if has_exited {
                    let bad = access.bad(addresses[lane], cta.exited_words(rank));
                    return Err(Trouble::new(lane, ExecFindingKind::UseAfterFree(bad)));
                }
                cta.visit(Some(rank));
                None
            }
            _ => {
                cta.visit(None);
                None
            }
        };
        match near {
            Some(near) => {
                let bad = access.bad(addresses[lane], near);
                Err(Trouble::new(lane, ExecFindingKind::OutOfBounds(bad)))
            }
            None => Ok(group),
        }
    }

    /// `mapa`, `getctarank`, and `cvta` of `.shared::cluster`. A rank that the cluster does not have is reported where the address is used.
    pub(super) fn cluster_address(&mut self, cta: &Cta<'_>, at: usize, step: &ClusterAddress, lanes: u32) {
        let frame = &mut self.frames[self.lane_groups[at].frame];
        let addresses = *frame.column(step.address, &cta.launch.constants);
        let ranks = *frame.column(step.rank, &cta.launch.constants);
        let place = if step.generic { Place::Shared } else { Place::Cluster };
        let mut out = [0; LANES];
        each(lanes, |lane| {
            let (owner, within) = cta.owner(place, addresses[lane]);
            let of = match owner {
                Owner::Peer(rank) => rank as u64,
                Owner::Outside(rank) => rank,
                Owner::Own | Owner::Foreign => cta.rank() as u64,
            };
            out[lane] = match step.mapping {
                ClusterMapping::Rank => of,
                ClusterMapping::Map => address_of(cta, step.generic, u64::from(ranks[lane] as u32), within),
                // Not in shared memory: what comes out is none of its addresses.
                ClusterMapping::Convert if owner == Owner::Foreign => addresses[lane],
                ClusterMapping::Convert => address_of(cta, !step.generic, of, within),
            };
        });
        frame.write(step.to, &out, lanes);
    }
}

/// The address of a place in the memory of a block by its rank.
fn address_of(cta: &Cta<'_>, generic: bool, rank: u64, within: u64) -> u64 {
    let is_own = rank == cta.rank() as u64;
    match generic {
        true if is_own => cta.shared_window.wrapping_add(within),
        true if rank < cta.launch.clusters.size() => {
            shared_window(cta.block_of_rank(rank as usize)).wrapping_add(within)
        }
        true => outside_cluster(rank, within),
        false if is_own => within,
        false => cluster_address(rank, within),
    }
}
