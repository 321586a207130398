//! The communicators of a machine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};

use kiln_driver::{Error, Refusal, Result};
use kiln_operation::{CommunicatorId, CommunicatorRank};

use crate::collective::communicator::{Member, MemberState, SimCommunicator};

/// All communicators of a machine, by id.
#[derive(Clone, Debug, Default)]
pub(crate) struct Communicators {
    by_id: BTreeMap<CommunicatorId, SimCommunicator>,
    /// Ids whose communicators all ranks have left.
    over: BTreeSet<CommunicatorId>,
    made: BTreeSet<CommunicatorId>,
    machine: MachineNumber,
}

/// Tells the machines of a process apart, also those with the same seed. A clone is of the same machine.
#[derive(Clone, Copy, Debug)]
struct MachineNumber(u64);

impl Default for MachineNumber {
    fn default() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Self(LAST.fetch_add(1, Ordering::Relaxed))
    }
}

impl Communicators {
    pub(crate) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    pub(crate) fn get(&self, id: &CommunicatorId) -> Option<&SimCommunicator> {
        self.by_id.get(id)
    }

    pub(crate) fn get_mut(&mut self, id: &CommunicatorId) -> Option<&mut SimCommunicator> {
        self.by_id.get_mut(id)
    }

    /// An id that no communicator of this process has. The same program gets the same ids if it makes its machines in the same order.
    pub(crate) fn new_id(&mut self, seed: u64) -> CommunicatorId {
        let number = self.made.len() as u64 + 1;
        let mut bytes = [0; CommunicatorId::BYTES];
        let words =
            [*b"kiln-sim", seed.to_le_bytes(), number.to_le_bytes(), self.machine.0.to_le_bytes()].concat();
        bytes.iter_mut().zip(words).for_each(|(byte, word)| *byte = word);
        let id = CommunicatorId::new(bytes);
        self.made.insert(id);
        id
    }

    /// A rank is loaded on a device.
    pub(crate) fn join(&mut self, call: &'static str, device: u32, rank: &CommunicatorRank) -> Result<()> {
        let name = rank.id.short();
        if self.over.contains(&rank.id) {
            let what = format!("communicator {name} is over: all of its ranks were unloaded");
            return Err(Error::invalid(call, what, "make another id"));
        }
        if !self.made.contains(&rank.id) {
            let what = format!("no device of this simulated machine made the id of communicator {name}");
            let next = "simulated ranks are devices of one machine: take all devices of the communicator from one `Machine`, none of them in a worker process, and make its id on one of them";
            return Err(Error::invalid(call, what, next));
        }
        let fresh = || SimCommunicator::new(rank.rank, rank.size, rank.deadline);
        let communicator = self.by_id.entry(rank.id).or_insert_with(fresh);
        let size = communicator.size();
        if size != rank.size {
            return Err(Error::refused(
                call,
                Refusal::Disagreement {
                    communicator: name,
                    rank: rank.rank,
                    other_rank: communicator.first_rank,
                    what: "the number of ranks".into(),
                    value: rank.size.to_string(),
                    other_value: size.to_string(),
                    next: "give all ranks the same size",
                },
            ));
        }
        let is_here = |state: &MemberState| *state == MemberState::Loaded { device };
        let other = communicator.members.iter().position(|member| is_here(&member.state));
        let state = &mut communicator.members[rank.rank as usize].state;
        match (&mut *state, other) {
            (MemberState::Absent, Some(other)) => {
                let what = format!(
                    "ranks {other} and {} of communicator {name} are both on device {device}",
                    rank.rank
                );
                Err(Error::invalid(
                    call,
                    what,
                    "give each rank a device; NCCL refuses two ranks on one GPU, too",
                ))
            }
            (MemberState::Absent, None) => {
                *state = MemberState::Loaded { device };
                Ok(())
            }
            (
                MemberState::Loaded { device }
                | MemberState::Left { device }
                | MemberState::Lost { device, .. },
                _,
            ) => {
                let what = format!(
                    "rank {} of communicator {name} was loaded before, on device {device}",
                    rank.rank
                );
                Err(Error::invalid(
                    call,
                    what,
                    "load each rank once, and make a new id for a new communicator",
                ))
            }
        }
    }

    /// The program has given a rank up, which calls nothing more.
    pub(crate) fn depart(&mut self, rank: &CommunicatorRank) {
        let communicator = self.by_id.get_mut(&rank.id);
        if let Some(member) = communicator.and_then(|known| known.members.get_mut(rank.rank as usize)) {
            member.has_departed = true;
        }
    }

    /// A rank is unloaded.
    pub(crate) fn leave(&mut self, rank: &CommunicatorRank) {
        let Some(communicator) = self.by_id.get_mut(&rank.id) else { return };
        if let Some(member) = communicator.members.get_mut(rank.rank as usize)
            && let MemberState::Loaded { device } = member.state
        {
            member.state = MemberState::Left { device };
        }
        let is_over =
            |state: &MemberState| matches!(state, MemberState::Left { .. } | MemberState::Lost { .. });
        if communicator.members.iter().all(|member| is_over(&member.state)) {
            self.by_id.remove(&rank.id);
            self.over.insert(rank.id);
        }
    }

    /// The ranks on a device are lost with it.
    pub(crate) fn lose(&mut self, lost: u32, why: &str) {
        for communicator in self.by_id.values_mut() {
            let is_lost = |member: &Member| member.state == MemberState::Loaded { device: lost };
            let Some(rank) = communicator.members.iter().position(is_lost) else { continue };
            communicator.members[rank].state = MemberState::Lost { device: lost, why: why.to_owned() };
            communicator.withdraw(rank as u32);
        }
    }
}
