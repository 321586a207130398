//! One communicator: its ranks, and where they meet.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::collective::description::{Description, Difference};

/// Bytes that a rank brings to a collective.
pub(crate) type Contribution = Arc<[u8]>;

#[derive(Clone, Debug)]
pub(crate) struct SimCommunicator {
    pub(crate) deadline: Duration,
    /// The rank that was loaded first, which decided on the size.
    pub(crate) first_rank: u32,
    pub(crate) members: Vec<Member>,
    meetings: BTreeMap<u64, Meeting>,
    /// By sender, receiver and number.
    transfers: BTreeMap<(u32, u32, u64), Transfer>,
}

/// One rank.
#[derive(Clone, Debug, Default)]
pub(crate) struct Member {
    pub(crate) state: MemberState,
    /// Launches that were submitted, and of them those that are done.
    pub(crate) launches: u64,
    pub(crate) finished: u64,
    /// Its launches ended without having been done.
    pub(crate) is_aborted: bool,
    /// Its program has given it up: it calls nothing more, and what it has called goes on.
    pub(crate) has_departed: bool,
    /// The last call, group or graph that was refused, since another rank had called something else: where each of its calls was to meet those of other ranks, and
    /// what is said of it there.
    pub(crate) refused: Vec<(MeetingPlace, String)>,
    counts: CallCounts,
}

/// How much a rank has called.
#[derive(Clone, Debug, Default)]
struct CallCounts {
    /// Collectives that were submitted, without sends and receives.
    collectives: u64,
    sent: BTreeMap<u32, u64>,
    received: BTreeMap<u32, u64>,
}

impl CallCounts {
    /// Where the next call of the rank meets those of other ranks.
    fn next_place(&self, rank: u32, called: &Description) -> MeetingPlace {
        use kiln_operation::CollectiveKind::{Recv, Send};
        let peer = called.collective.root_rank().unwrap_or(0);
        let next = |known: &BTreeMap<u32, u64>| known.get(&peer).copied().unwrap_or(0);
        match called.collective.kind() {
            Send => MeetingPlace::Pair { from: rank, to: peer, number: next(&self.sent) },
            Recv => MeetingPlace::Pair { from: peer, to: rank, number: next(&self.received) },
            _ => MeetingPlace::All(self.collectives),
        }
    }

    /// The rank has called what meets there.
    fn take(&mut self, rank: u32, place: MeetingPlace) {
        match place {
            MeetingPlace::All(number) => self.collectives = number + 1,
            MeetingPlace::Pair { from, to, number } if from == rank => {
                self.sent.insert(to, number + 1);
            }
            MeetingPlace::Pair { from, number, .. } => {
                self.received.insert(from, number + 1);
            }
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) enum MemberState {
    #[default]
    Absent,
    Loaded {
        device: u32,
    },
    /// It was unloaded.
    Left {
        device: u32,
    },
    Lost {
        device: u32,
        why: String,
    },
}

/// Where one collective of a launch meets those of other ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MeetingPlace {
    /// The nth collective.
    All(u64),
    /// The nth transfer from one rank to another.
    Pair { from: u32, to: u32, number: u64 },
}

impl fmt::Display for MeetingPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All(number) => write!(f, "collective {number}"),
            Self::Pair { from, to, number } => {
                write!(f, "transfer {number} from rank {from} to rank {to}")
            }
        }
    }
}

/// One collective of all ranks.
#[derive(Clone, Debug)]
struct Meeting {
    first: (u32, Description),
    arrived: Vec<Option<Contribution>>,
    /// Ranks that are done with it.
    left: usize,
    /// When the last one that arrived did, on the virtual clock.
    arrived_ns: u64,
}

/// One send and its receive.
#[derive(Clone, Debug, Default)]
struct Transfer {
    sender: Option<Description>,
    receiver: Option<Description>,
    data: Option<Contribution>,
    receiver_arrived: bool,
    left: usize,
    arrived_ns: u64,
}

impl SimCommunicator {
    pub(crate) fn new(first_rank: u32, size: u32, deadline: Duration) -> Self {
        Self {
            deadline,
            first_rank,
            members: vec![Member::default(); size as usize],
            meetings: BTreeMap::new(),
            transfers: BTreeMap::new(),
        }
    }

    pub(crate) fn size(&self) -> u32 {
        self.members.len() as u32
    }

    /// Whether a rank is lost or was aborted. The others are then not ended before their deadline, since each of them can be aborted and go on.
    pub(crate) fn is_failing(&self) -> bool {
        let is_over = |member: &Member| member.is_aborted || matches!(member.state, MemberState::Lost { .. });
        self.members.iter().any(is_over)
    }

    pub(crate) fn member(&self, rank: u32) -> Option<&Member> {
        self.members.get(rank as usize)
    }

    /// Takes the next place for a collective of a rank, or says which rank called something else.
    pub(crate) fn submit(
        &mut self,
        rank: u32,
        called: Description,
    ) -> Result<MeetingPlace, (MeetingPlace, u32, Difference)> {
        let place = self.members[rank as usize].counts.next_place(rank, &called);
        let size = self.members.len();
        let known = match place {
            MeetingPlace::All(number) => self.meetings.get(&number).map(|meeting| meeting.first),
            MeetingPlace::Pair { from, to, number } => {
                let transfer = self.transfers.get(&(from, to, number));
                let other = |transfer: &Transfer| match rank == from {
                    true => transfer.receiver.map(|called| (to, called)),
                    false => transfer.sender.map(|called| (from, called)),
                };
                transfer.and_then(other)
            }
        };
        if let Some((other, theirs)) = known
            && let Some(difference) = called.difference(&theirs)
        {
            return Err((place, other, difference));
        }
        match place {
            MeetingPlace::All(number) => {
                let fresh =
                    || Meeting { first: (rank, called), arrived: vec![None; size], left: 0, arrived_ns: 0 };
                self.meetings.entry(number).or_insert_with(fresh);
            }
            MeetingPlace::Pair { from, to, number } => {
                let transfer = self.transfers.entry((from, to, number)).or_default();
                match rank == from {
                    true => transfer.sender = Some(called),
                    false => transfer.receiver = Some(called),
                }
            }
        }
        self.members[rank as usize].counts.take(rank, place);
        Ok(place)
    }

    /// Where calls of a rank would meet those of other ranks, if they were submitted one after the other.
    pub(crate) fn next_places(&self, rank: u32, called: &[Description]) -> Vec<MeetingPlace> {
        let mut counts = self.member(rank).map(|member| member.counts.clone()).unwrap_or_default();
        let next = |called: &Description| {
            let place = counts.next_place(rank, called);
            counts.take(rank, place);
            place
        };
        called.iter().map(next).collect()
    }

    /// A rank has read what it brings.
    pub(crate) fn arrive(&mut self, rank: u32, place: MeetingPlace, bytes: Contribution, now_ns: u64) {
        match place {
            MeetingPlace::All(number) => {
                if let Some(meeting) = self.meetings.get_mut(&number) {
                    meeting.arrived_ns = meeting.arrived_ns.max(now_ns);
                    meeting.arrived[rank as usize] = Some(bytes);
                }
            }
            MeetingPlace::Pair { from, to, number } => {
                if let Some(transfer) = self.transfers.get_mut(&(from, to, number)) {
                    transfer.arrived_ns = transfer.arrived_ns.max(now_ns);
                    match rank == from {
                        true => transfer.data = Some(bytes),
                        false => transfer.receiver_arrived = true,
                    }
                }
            }
        }
    }

    /// The ranks that a rank still waits for at a place.
    pub(crate) fn missing(&self, place: MeetingPlace) -> Vec<u32> {
        match place {
            MeetingPlace::All(number) => {
                let arrived = self.meetings.get(&number).map(|meeting| &meeting.arrived[..]);
                let is_missing = |rank: &u32| {
                    arrived.is_some_and(|arrived| arrived.get(*rank as usize).is_some_and(Option::is_none))
                };
                (0..self.size()).filter(is_missing).collect()
            }
            MeetingPlace::Pair { from, to, number } => {
                let transfer = self.transfers.get(&(from, to, number));
                let sender = transfer.is_some_and(|transfer| transfer.data.is_none()).then_some(from);
                let receiver = transfer.is_some_and(|transfer| !transfer.receiver_arrived).then_some(to);
                sender.into_iter().chain(receiver).collect()
            }
        }
    }

    /// Whether a rank has called what meets at a place.
    pub(crate) fn has_called(&self, rank: u32, place: MeetingPlace) -> bool {
        match place {
            MeetingPlace::All(number) => {
                self.member(rank).is_some_and(|member| member.counts.collectives > number)
            }
            MeetingPlace::Pair { from, to, number } => {
                let transfer = self.transfers.get(&(from, to, number));
                let called = |transfer: &Transfer| match rank == from {
                    true => transfer.sender.is_some(),
                    false => transfer.receiver.is_some(),
                };
                transfer.is_some_and(called)
            }
        }
    }

    /// Whether a rank does not come to a place because it was unloaded, or was given up before it called what meets there.
    pub(crate) fn is_gone(&self, rank: u32, place: MeetingPlace) -> bool {
        self.member(rank).is_some_and(|member| match member.state {
            MemberState::Left { .. } => true,
            MemberState::Loaded { .. } => member.has_departed && !self.has_called(rank, place),
            MemberState::Absent | MemberState::Lost { .. } => false,
        })
    }

    /// What all ranks brought, in the order of the ranks, and when the last one came. For a transfer it is the sender's alone.
    pub(crate) fn contributions(&self, place: MeetingPlace) -> (Vec<Contribution>, u64) {
        match place {
            MeetingPlace::All(number) => self.meetings.get(&number).map_or((Vec::new(), 0), |meeting| {
                (meeting.arrived.iter().flatten().cloned().collect(), meeting.arrived_ns)
            }),
            MeetingPlace::Pair { from, to, number } => {
                self.transfers.get(&(from, to, number)).map_or((Vec::new(), 0), |transfer| {
                    (transfer.data.iter().cloned().collect(), transfer.arrived_ns)
                })
            }
        }
    }

    /// A rank is lost: it is missing wherever not all ranks had arrived, since it cannot exchange anything with one that comes later.
    pub(crate) fn withdraw(&mut self, rank: u32) {
        for meeting in self.meetings.values_mut() {
            if meeting.arrived.iter().any(Option::is_none)
                && let Some(arrived) = meeting.arrived.get_mut(rank as usize)
            {
                *arrived = None;
            }
        }
        for ((from, to, _), transfer) in &mut self.transfers {
            if transfer.data.is_some() && transfer.receiver_arrived {
                continue;
            }
            if *from == rank {
                transfer.data = None;
            }
            if *to == rank {
                transfer.receiver_arrived = false;
            }
        }
    }

    /// A rank is done at a place, which goes once all are.
    pub(crate) fn leave(&mut self, place: MeetingPlace) {
        let size = self.members.len();
        match place {
            MeetingPlace::All(number) => {
                if let Some(meeting) = self.meetings.get_mut(&number) {
                    meeting.left += 1;
                    if meeting.left == size {
                        self.meetings.remove(&number);
                    }
                }
            }
            MeetingPlace::Pair { from, to, number } => {
                if let Some(transfer) = self.transfers.get_mut(&(from, to, number)) {
                    transfer.left += 1;
                    if transfer.left == 2 {
                        self.transfers.remove(&(from, to, number));
                    }
                }
            }
        }
    }
}
