//! A call of a rank on a GPU as it was submitted, for what is said of one that is not done.

use std::collections::BTreeMap;
use std::panic::Location;

use kiln_operation::{Collective, CollectiveKind};

use crate::called_collective::CalledCollective;
use crate::collective_part::Part;
use crate::collective_text::called_alone;
use crate::few::Few;
use crate::transfer::Transfer;

/// A call, and its line.
#[derive(Clone, Debug)]
pub(crate) struct NotedCall {
    parts: Few<NotedPart>,
    place: &'static Location<'static>,
}

/// One collective of it, and where it meets those of other ranks.
#[derive(Clone, Copy, Debug)]
struct NotedPart {
    collective: Collective,
    count: u64,
    number: u64,
}

/// How much a rank has called.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct CallCounts {
    /// Collectives of all ranks.
    pub(crate) collectives: u64,
    /// Transfers to other ranks, and from them.
    pub(crate) sent: BTreeMap<u32, u64>,
    pub(crate) received: BTreeMap<u32, u64>,
}

impl CallCounts {
    /// A call was submitted.
    pub(crate) fn note(&mut self, parts: &[Part], place: &'static Location<'static>) -> NotedCall {
        let mut one = |part: &Part| {
            let Part { collective, count, .. } = part;
            let peer = collective.root_rank().unwrap_or(0);
            let counter = match collective.kind() {
                CollectiveKind::Send => self.sent.entry(peer).or_default(),
                CollectiveKind::Recv => self.received.entry(peer).or_default(),
                _ => &mut self.collectives,
            };
            *counter += 1;
            NotedPart { collective: *collective, count: *count, number: *counter - 1 }
        };
        let parts = match parts {
            [part] => Few::One(one(part)),
            _ => Few::More(parts.iter().map(one).collect()),
        };
        NotedCall { parts, place }
    }
}

/// Where a collective meets those of other ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MeetingNumber {
    /// The nth collective of all ranks.
    All(u64),
    /// A transfer, and the rank at its other end.
    Pair(Transfer, u32),
}

impl MeetingNumber {
    /// Whether a rank that has called so much has called this.
    pub(crate) fn is_in(self, rank: u32, counts: &CallCounts) -> bool {
        let of = |known: &BTreeMap<u32, u64>, peer: u32| known.get(&peer).copied().unwrap_or(0);
        match self {
            Self::All(number) => counts.collectives > number,
            Self::Pair(Transfer { from, to, number }, _) if from == rank => of(&counts.sent, to) > number,
            Self::Pair(Transfer { from, number, .. }, _) => of(&counts.received, from) > number,
        }
    }

    /// Whether a rank is to call this.
    pub(crate) fn needs(self, rank: u32) -> bool {
        match self {
            Self::All(_) => true,
            Self::Pair(_, peer) => peer == rank,
        }
    }

    pub(crate) fn text(self) -> String {
        match self {
            Self::All(number) => format!("collective {number}"),
            Self::Pair(Transfer { from, to, number }, _) => {
                format!("transfer {number} from rank {from} to rank {to}")
            }
        }
    }
}

impl NotedCall {
    /// Its collectives as a rank has called them, with where each meets those of other ranks.
    pub(crate) fn parts(&self, rank: u32) -> Vec<(MeetingNumber, CalledCollective)> {
        let one = |part: &NotedPart| {
            let NotedPart { collective, count, number } = *part;
            let peer = collective.root_rank().unwrap_or(0);
            let meeting = match collective.kind() {
                CollectiveKind::Send => MeetingNumber::Pair(Transfer { from: rank, to: peer, number }, peer),
                CollectiveKind::Recv => MeetingNumber::Pair(Transfer { from: peer, to: rank, number }, peer),
                _ => MeetingNumber::All(number),
            };
            (meeting, CalledCollective::new(rank, &called_alone(&collective, count), self.place))
        };
        self.parts.as_slice().iter().map(one).collect()
    }
}
