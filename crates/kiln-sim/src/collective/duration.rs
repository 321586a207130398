//! How long collectives take on the virtual clock.

use kiln_operation::CollectiveKind;

use crate::collective::collective_launch::CollectiveRun;
use crate::collective::communicator::MemberState;
use crate::collective::description::Description;
use crate::collective::host_tree::HostTree;
use crate::schedule::machine_state::State;

impl State {
    /// How long a launch of collectives takes once all ranks have come: an all-reduce and a barrier through a ring or a tree, whichever is faster, as NCCL chooses; all others through a ring.
    pub(crate) fn collective_ns(&self, run: &CollectiveRun) -> u64 {
        let Some(communicator) = self.communicators.get(&run.call.rank.id) else { return 0 };
        let ranks = u64::from(communicator.size());
        let device = |state: &MemberState| match state {
            MemberState::Loaded { device } => Some(*device),
            _ => None,
        };
        let devices: Vec<u32> =
            communicator.members.iter().filter_map(|member| device(&member.state)).collect();
        let one = |called: &Description| {
            let ring_ns = self.ring_ns(called, ranks, &devices);
            match called.collective.kind() {
                CollectiveKind::AllReduce | CollectiveKind::Barrier => {
                    ring_ns.min(self.tree_ns(called, &devices))
                }
                _ => ring_ns,
            }
        };
        run.call.descriptions.iter().map(one).fold(0, u64::saturating_add)
    }

    /// In steps of a ring: each step passes one block over the slowest link. What a broadcast or a reduction moves passes every link as a whole, in small pieces one behind the other.
    fn ring_ns(&self, called: &Description, ranks: u64, devices: &[u32]) -> u64 {
        let neighbours = devices.iter().zip(devices.iter().cycle().skip(1));
        let links: Vec<(u32, u32)> =
            neighbours.map(|(one, other)| (*one, *other)).filter(|(one, other)| one != other).collect();
        let step_ns = |bytes: u64| links.iter().map(|link| self.link_ns(*link, bytes)).max().unwrap_or(0);
        let bytes = block_bytes(called);
        let (steps, bytes) = match called.collective.kind() {
            CollectiveKind::AllReduce => (2 * (ranks - 1), bytes / ranks),
            CollectiveKind::Reduce | CollectiveKind::Broadcast => {
                let first_ns = ranks.saturating_sub(2).saturating_mul(step_ns(0));
                return first_ns.saturating_add(step_ns(bytes));
            }
            CollectiveKind::Send | CollectiveKind::Recv => (1, bytes),
            CollectiveKind::Barrier => (2 * (ranks - 1), 0),
            _ => (ranks - 1, bytes),
        };
        steps.saturating_mul(step_ns(bytes))
    }

    /// Up through a tree and down again: along the devices of a host, and between hosts through two binary trees, each with half of the bytes. A host that passes values on in one tree is at the end of
    /// the other, so that each link carries the buffer once in either direction.
    fn tree_ns(&self, called: &Description, devices: &[u32]) -> u64 {
        let tree = HostTree::of(devices, |device| self.links.host_of(device));
        let longest = |links: &[(u32, u32)], bytes: u64| {
            links.iter().map(|link| self.link_ns(*link, bytes)).max().unwrap_or(0)
        };
        let chain_ns = tree.chain_steps.saturating_mul(longest(&tree.chains, 0));
        let hosts_ns = tree.depth.saturating_mul(longest(&tree.edges, 0));
        let bytes = match called.collective.kind() {
            CollectiveKind::Barrier => 0,
            _ => block_bytes(called),
        };
        let moving = |link: &(u32, u32)| self.link_ns(*link, bytes) - self.link_ns(*link, 0);
        let moving_ns = tree.chains.iter().chain(&tree.edges).map(moving).max().unwrap_or(0);
        chain_ns.saturating_add(hosts_ns).saturating_add(moving_ns).saturating_mul(2)
    }

    /// How long bytes take over the link of two devices.
    fn link_ns(&self, (one, other): (u32, u32), bytes: u64) -> u64 {
        let ns = match self.links.link(one, other) {
            Some(link) => link.copy_ns(bytes),
            None => self.costs.link(bytes),
        };
        ns.saturating_mul(self.faults.plan().link_factor(one, other))
    }
}

fn block_bytes(called: &Description) -> u64 {
    called.count.saturating_mul(called.collective.element().bytes())
}
