//! What the ranks of this process have called in a communicator of simulated devices.
//!
//! Such ranks submit without waiting for each other, and their machine does not know the lines of the program. With this, two calls that do not meet are told with both lines, and so are sends that
//! wait for each other: as ranks of several processes are told of them. Nothing is known of replays of graphs, so a communicator that has one is not looked at any more.

use std::collections::{BTreeMap, VecDeque};
use std::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use kiln_operation::{CollectiveKind, CommunicatorId};

use crate::called_collective::CalledCollective;
use crate::collective_part::Part;
use crate::collective_text::{called_alone, called_as_group};
use crate::membership::LocalRank;
use crate::transfer::{Transfer, TransferCall};
use crate::transfer_order::{MetTransfer, TransferOrder};

/// Calls of a rank that are kept. One that is more ahead of another rank than this is told without its line.
const MAX_KEPT: usize = 4096;

/// Those of one communicator, shared by its ranks in this process.
pub(crate) struct CallLog {
    calls: Mutex<Calls>,
}

#[derive(Default)]
struct Calls {
    ranks: BTreeMap<u32, RankCalls>,
    order: TransferOrder,
    /// Transfers that one of the two ranks has called.
    open: BTreeMap<(u32, u32, u64), OpenTransfer>,
    has_graphs: bool,
}

#[derive(Default)]
struct RankCalls {
    rank: Option<Weak<dyn LocalRank>>,
    /// Calls so far, a group as one.
    calls: u64,
    /// Collectives of all ranks so far, and the last of them.
    collectives: u64,
    kept: VecDeque<Kept>,
    sent: BTreeMap<u32, u64>,
    received: BTreeMap<u32, u64>,
}

struct Kept {
    number: u64,
    what: String,
    place: &'static Location<'static>,
}

struct OpenTransfer {
    is_send: bool,
    /// Which call of its rank.
    call: u64,
    /// What both ranks must call alike.
    called: String,
    /// What is said of it.
    said: String,
    place: &'static Location<'static>,
}

impl CallLog {
    /// The log of a communicator.
    pub(crate) fn of(id: CommunicatorId) -> Arc<Self> {
        static LOGS: Mutex<BTreeMap<CommunicatorId, Weak<CallLog>>> = Mutex::new(BTreeMap::new());
        let mut logs = LOGS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = logs.get(&id).and_then(Weak::upgrade) {
            return known;
        }
        logs.retain(|_, log| log.strong_count() > 0);
        let fresh = Arc::new(Self { calls: Mutex::default() });
        logs.insert(id, Arc::downgrade(&fresh));
        fresh
    }

    /// A rank of this process has joined.
    pub(crate) fn enter(&self, rank: u32, local: Weak<dyn LocalRank>) {
        self.calls().ranks.entry(rank).or_default().rank = Some(local);
    }

    /// The ranks of this process.
    pub(crate) fn local_ranks(&self) -> Vec<Arc<dyn LocalRank>> {
        self.calls().ranks.values().filter_map(|rank| rank.rank.as_ref()?.upgrade()).collect()
    }

    /// A rank has made a graph of calls.
    pub(crate) fn note_graph(&self) {
        self.calls().has_graphs = true;
    }

    /// A rank has submitted a call. What is said of the sends that wait for each other, if it closes a circle of such.
    pub(crate) fn note(
        &self,
        rank: u32,
        parts: &[Part],
        place: &'static Location<'static>,
    ) -> Option<Vec<String>> {
        let mut calls = self.calls();
        if calls.has_graphs {
            return None;
        }
        let own = calls.ranks.entry(rank).or_default();
        let call = own.calls;
        own.calls += 1;
        let mut circle = None;
        for (part, what) in parts.iter().zip(called_as_group(parts)) {
            match part.is_pairwise() {
                true => circle = calls.note_transfer((rank, call), part, place).or(circle),
                false => calls.note_collective(rank, what, place),
            }
        }
        circle
    }

    /// The call of a rank that is refused, and the one of another rank that it was to meet, if both are known.
    pub(crate) fn calls_of(
        &self,
        (rank, other_rank): (u32, u32),
        parts: &[Part],
        place: &'static Location<'static>,
    ) -> Option<(CalledCollective, CalledCollective)> {
        let calls = self.calls();
        let own = calls.ranks.get(&rank).filter(|_| !calls.has_graphs);
        let mut number = own.map_or(0, |own| own.collectives);
        let mut transfers: Vec<Transfer> = Vec::new();
        for (part, what) in parts.iter().zip(called_as_group(parts)) {
            let mine = CalledCollective::new(rank, &what, place);
            if part.is_pairwise() {
                let (first, _) = transfer_of(rank, own, part);
                // Those of this group that come before it.
                let before =
                    transfers.iter().filter(|known| (known.from, known.to) == (first.from, first.to)).count();
                let transfer = Transfer { number: first.number + before as u64, ..first };
                transfers.push(transfer);
                let Transfer { from, to, number } = transfer;
                let known = calls.open.get(&(from, to, number));
                let is_other = part.collective.root_rank() == Some(other_rank);
                if let Some(known) = known.filter(|known| is_other && known.called != what) {
                    let mine = CalledCollective { what: transfer_text(transfer, part), ..mine };
                    let other = CalledCollective::new(other_rank, &known.said, known.place);
                    return Some((mine, other));
                }
                continue;
            }
            let theirs = calls.ranks.get(&other_rank)?.kept.iter().find(|kept| kept.number == number);
            number += 1;
            if let Some(theirs) = theirs.filter(|theirs| theirs.what != mine.what) {
                return Some((mine, CalledCollective::new(other_rank, &theirs.what, theirs.place)));
            }
        }
        None
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Calls {
    fn note_collective(&mut self, rank: u32, what: String, place: &'static Location<'static>) {
        let own = self.ranks.entry(rank).or_default();
        own.kept.push_back(Kept { number: own.collectives, what, place });
        own.collectives += 1;
        if own.kept.len() > MAX_KEPT {
            own.kept.pop_front();
        }
    }

    fn note_transfer(
        &mut self,
        (rank, call): (u32, u64),
        part: &Part,
        place: &'static Location<'static>,
    ) -> Option<Vec<String>> {
        let (transfer, is_send) = transfer_of(rank, self.ranks.get(&rank), part);
        let Transfer { from, to, number } = transfer;
        let own = self.ranks.entry(rank).or_default();
        let (counts, peer) = if is_send { (&mut own.sent, to) } else { (&mut own.received, from) };
        counts.insert(peer, number + 1);
        let Some(other) = self.open.remove(&(from, to, number)) else {
            self.order.sent("", transfer);
            let said = transfer_text(transfer, part);
            let called = called_alone(&part.collective, part.count);
            self.open.insert((from, to, number), OpenTransfer { is_send, call, called, said, place });
            return None;
        };
        let (sent_in, received_in) = if is_send { (call, other.call) } else { (other.call, call) };
        let said = if is_send {
            said_of(transfer, part, place)
        } else {
            format!("{}, at {}", other.said, other.place)
        };
        debug_assert!(other.is_send != is_send);
        self.order.received("", MetTransfer { transfer, sent_in, received_in, said })
    }
}

/// Which transfer of a rank comes next, and whether it is a send.
fn transfer_of(rank: u32, own: Option<&RankCalls>, part: &Part) -> (Transfer, bool) {
    let peer = part.collective.root_rank().unwrap_or(0);
    let is_send = part.collective.kind() == CollectiveKind::Send;
    let counts = own.map(|own| if is_send { &own.sent } else { &own.received });
    let number = counts.and_then(|counts| counts.get(&peer)).copied().unwrap_or(0);
    let (from, to) = if is_send { (rank, peer) } else { (peer, rank) };
    (Transfer { from, to, number }, is_send)
}

fn said_of(transfer: Transfer, part: &Part, place: &'static Location<'static>) -> String {
    TransferCall { transfer, collective: &part.collective, count: part.count, place }.to_string()
}

/// The same without its line.
fn transfer_text(transfer: Transfer, part: &Part) -> String {
    let said = said_of(transfer, part, Location::caller());
    said.rsplit_once(", at ").map_or(said.clone(), |(text, _)| text.to_owned())
}
