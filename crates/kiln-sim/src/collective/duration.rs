//! How long collectives take on the virtual clock.

use kiln_operation::CollectiveKind;

use crate::collective::collective_launch::CollectiveRun;
use crate::collective::communicator::MemberState;
use crate::schedule::machine_state::State;

impl State {
    /// How long a launch of collectives takes once all ranks have come, in steps of a ring: each step passes one block over the slowest link. What a broadcast or a reduction moves
    /// passes every link as a whole, in small pieces one behind the other.
    pub(crate) fn collective_ns(&self, run: &CollectiveRun) -> u64 {
        let Some(communicator) = self.communicators.get(&run.call.rank.id) else { return 0 };
        let ranks = u64::from(communicator.size());
        let device = |state: &MemberState| match state {
            MemberState::Loaded { device } => Some(*device),
            _ => None,
        };
        let devices: Vec<u32> =
            communicator.members.iter().filter_map(|member| device(&member.state)).collect();
        let neighbours = devices.iter().zip(devices.iter().cycle().skip(1));
        let links: Vec<(u32, u32)> =
            neighbours.map(|(one, other)| (*one, *other)).filter(|(one, other)| one != other).collect();
        let step_ns = |bytes: u64| {
            let over = |(one, other): &(u32, u32)| {
                let ns = match self.links.link(*one, *other) {
                    Some(link) => link.copy_ns(bytes),
                    None => self.costs.link(bytes),
                };
                ns.saturating_mul(self.faults.link_factor(*one, *other))
            };
            links.iter().map(over).max().unwrap_or(0)
        };
        let one = |called: &crate::collective::description::Description| {
            let bytes = called.count.saturating_mul(called.collective.element().bytes());
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
        };
        run.call.descriptions.iter().map(one).fold(0, u64::saturating_add)
    }
}
