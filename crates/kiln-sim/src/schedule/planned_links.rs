//! Links that are cut or slow as planned.

use kiln_driver::{Code, Fault as Loss};

use crate::check::access_origin::Mark;
use crate::collective::communicator::MemberState;
use crate::schedule::machine_state::State;
use crate::schedule::stream_queue::Ready;
use crate::schedule::task::End;

impl State {
    /// A copy begins. Whether its device is lost by that, with a link that is cut.
    pub(crate) fn copy_passes_link(&mut self, (from, to): (&End, &End), device: u32, mark: &Mark) -> bool {
        if let (End::Device { device: from, .. }, End::Device { device: to, .. }) = (from, to)
            && from != to
        {
            self.pass_link((*from, *to), mark);
        }
        self.devices[device as usize].lost.is_some()
    }

    /// A rank arrives at a collective, whose links are those to its neighbours in the ring. Whether its device is lost by that.
    pub(crate) fn collective_passes_links(&mut self, ready: Ready, device: u32, mark: &Mark) -> bool {
        for neighbour in self.ring_neighbours(ready, device) {
            // Both ranks come by: the one that is lost with the link counts.
            let is_cut = |(lost, to, _): (u32, u32, u64)| (lost, to) == (device, neighbour);
            let is_lost = self.faults.plan().cut_links().any(is_cut);
            match is_lost {
                true => self.pass_link((device, neighbour), mark),
                false => self.tell_slow_link((device, neighbour)),
            }
        }
        self.devices[device as usize].lost.is_some()
    }

    /// The devices of the ranks before and after that of a collective, if they are loaded.
    fn ring_neighbours(&self, ready: Ready, device: u32) -> Vec<u32> {
        let communicator =
            self.collective_run(ready).and_then(|run| self.communicators.get(&run.call.rank.id));
        let Some((run, communicator)) = self.collective_run(ready).zip(communicator) else {
            return Vec::new();
        };
        let (rank, size) = (run.call.rank.rank, communicator.size());
        let loaded = |rank: u32| match communicator.member(rank)?.state {
            MemberState::Loaded { device: other } => Some(other).filter(|other| *other != device),
            _ => None,
        };
        let before = loaded((rank + size - 1) % size);
        let after = loaded((rank + 1) % size).filter(|after| Some(*after) != before);
        before.into_iter().chain(after).collect()
    }

    /// Says that a link is slow as planned, once.
    fn tell_slow_link(&mut self, (one, other): (u32, u32)) {
        let factor = self.faults.meet_slow_link(one, other);
        let pair = (one.min(other), one.max(other));
        if factor == 1 || self.link_transfers.contains_key(&pair) {
            return;
        }
        self.link_transfers.insert(pair, 0);
        let (now_ns, (one, other)) = (self.now_ns, pair);
        let text = format_args!(
            "what passes the link of devices {one} and {other} takes {factor} times as long, as planned"
        );
        self.journal.write(now_ns, text);
    }

    /// Something passes the link of two devices.
    fn pass_link(&mut self, (one, other): (u32, u32), mark: &Mark) {
        self.tell_slow_link((one, other));
        let pair = (one.min(other), one.max(other));
        let passed = self.link_transfers.entry(pair).or_default();
        *passed += 1;
        let passed = *passed;
        if let Some((lost, to, transfer)) = self.faults.meet_cut_link(pair, passed) {
            let detail =
                format!("the link to device {to} is cut, as planned for transfer {transfer} over it");
            let actor = Some(&mark.actor).filter(|actor| actor.device == lost);
            self.lose(lost, Loss { code: Code::NVLINK_UNCORRECTABLE, detail }, actor);
        }
    }
}
