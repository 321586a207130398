//! What rank 0 keeps: which ranks are there, the values they put, and which ranks wait for which value.
//!
//! This part is pure: it says which messages go to which rank, and the server sends them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::host_ring::{Duty, HostRing, Place};
use super::message::{Message, Refusal};
use super::refused_processes::{REFUSED_KEY, RefusedProcesses};
use super::told_absences::{ToldAbsence, ToldAbsences};
use crate::compared_groups::{self, ComparedCall, ComparedGroups};
use crate::given_up_collectives::{GivenUpCollectives, WantedEnd, brought_keys};
use crate::transfer::{self, Transfer};
use crate::transfer_order::{MetTransfer, TransferOrder};

/// The most bytes of all keys and values of a program.
const MAX_BYTES: u64 = 64 << 20;

/// A message and the rank that gets it.
pub(super) type Delivery = (u32, Message);

#[derive(Debug)]
pub(super) struct Store {
    size: u32,
    present: BTreeSet<u32>,
    lost: BTreeMap<u32, String>,
    complete: bool,
    values: HashMap<String, Vec<u8>>,
    bytes: u64,
    /// Bytes of what ranks bring to collectives.
    exchanged: u64,
    /// The most of them.
    exchange_limit: u64,
    waiting: HashMap<String, Vec<Waiter>>,
    /// Ranks that have left as planned.
    left: BTreeSet<u32>,
    ring: HostRing,
    order: TransferOrder,
    groups: ComparedGroups,
    given_up: GivenUpCollectives,
    told: ToldAbsences,
    refused: RefusedProcesses,
}

/// A rank that waits for a value.
#[derive(Debug)]
struct Waiter {
    rank: u32,
    id: u64,
    /// The rank that puts the value, where that is known.
    of: Option<u32>,
}

impl Store {
    /// The store of a job of so many ranks, which takes so many bytes of what they bring to collectives.
    pub(super) fn new(size: u32, exchange_limit: u64) -> Self {
        let (values, waiting) = (HashMap::new(), HashMap::new());
        Self {
            size,
            present: BTreeSet::new(),
            lost: BTreeMap::new(),
            complete: false,
            values,
            bytes: 0,
            exchanged: 0,
            exchange_limit,
            waiting,
            left: BTreeSet::new(),
            ring: HostRing::default(),
            order: TransferOrder::default(),
            groups: ComparedGroups::default(),
            given_up: GivenUpCollectives::default(),
            told: ToldAbsences::default(),
            refused: RefusedProcesses::default(),
        }
    }

    /// Whether a rank has this thread.
    pub(super) fn is_at(&self, rank: u32, thread: &str) -> bool {
        self.ring.is_at(rank, thread)
    }

    /// Whether a rank may join.
    pub(super) fn admit(&self, rank: u32, size: u32) -> Result<(), Refusal> {
        match () {
            () if size != self.size => Err(Refusal::Size { size: self.size }),
            () if rank >= self.size => Err(Refusal::Range),
            () if self.present.contains(&rank) => Err(Refusal::Taken),
            () => Ok(()),
        }
    }

    /// A process was not taken as a rank. Ranks that wait for that one can read it.
    pub(super) fn note_refusal(&mut self, rank: u32, size: u32, refusal: Refusal) {
        self.refused.note(rank, size, refusal);
        self.values.insert(REFUSED_KEY.to_owned(), self.refused.text().into_bytes());
    }

    /// A rank that was admitted is there.
    pub(super) fn join(&mut self, rank: u32) -> Vec<Delivery> {
        let mut deliveries = Vec::new();
        let was_lost = self.lost.remove(&rank).is_some();
        let had_left = self.left.remove(&rank);
        self.told.forget(rank);
        if had_left || was_lost {
            self.told.forget_of(rank);
            deliveries.extend(self.present.iter().map(|other| (*other, Message::Back { rank })));
        }
        // It is told that it is a replacement, unless the ranks have not met yet.
        if (had_left || was_lost) && self.complete {
            deliveries.push((rank, Message::Back { rank }));
        }
        for (lost, cause) in &self.lost {
            deliveries.extend(self.said_told(*lost).map(|told| (rank, told)));
            deliveries.push((rank, Message::Lost { rank: *lost, cause: cause.clone() }));
        }
        for left in &self.left {
            deliveries.extend(self.said_told(*left).map(|told| (rank, told)));
            deliveries.push((rank, Message::Left { rank: *left }));
        }
        self.present.insert(rank);
        let all = u32::try_from(self.present.len()).is_ok_and(|present| present == self.size);
        match (all, self.complete) {
            (true, false) => deliveries.extend(self.present.iter().map(|rank| (*rank, Message::Complete))),
            (_, true) => deliveries.push((rank, Message::Complete)),
            (false, false) => {}
        }
        self.complete |= all;
        deliveries
    }

    /// A rank has left as planned, or is gone without a word.
    pub(super) fn leave(&mut self, rank: u32, cause: Option<String>) -> Vec<Delivery> {
        if !self.present.remove(&rank) {
            return Vec::new();
        }
        for waiting in self.waiting.values_mut() {
            waiting.retain(|waiter| waiter.rank != rank);
        }
        let mut duties: Vec<Delivery> = self.ring.leave(rank).into_iter().map(told).collect();
        let Some(cause) = cause else {
            duties.extend(self.leave_as_planned(rank));
            return duties;
        };
        self.waiting.retain(|_, waiting| !waiting.is_empty());
        let own = own_keys(rank);
        self.values.retain(|key, value| {
            let is_kept = !key.starts_with(&own);
            self.bytes -= if is_kept { 0 } else { room(key, value) };
            is_kept
        });
        self.lost.insert(rank, cause.clone());
        duties.extend(self.tell_others(rank));
        duties
            .extend(self.present.iter().map(|other| (*other, Message::Lost { rank, cause: cause.clone() })));
        duties
    }

    /// What a rank was told of one that has gone, for another rank.
    fn said_told(&self, rank: u32) -> Option<Message> {
        Some(Message::Told { rank, absence: self.told.of(rank)?.clone() })
    }

    /// The same for all other ranks.
    fn tell_others(&self, rank: u32) -> Vec<Delivery> {
        self.said_told(rank).map_or_else(Vec::new, |told| self.for_others(rank, &told))
    }

    /// A message to all ranks but this one.
    fn for_others(&self, rank: u32, message: &Message) -> Vec<Delivery> {
        self.present.iter().filter(|other| **other != rank).map(|other| (*other, message.clone())).collect()
    }

    /// A rank that has left puts nothing more: those that wait for it are told.
    fn leave_as_planned(&mut self, rank: u32) -> Vec<Delivery> {
        self.left.insert(rank);
        // One that leaves because another one is late is not why the others fail.
        if !self.told.of(rank).is_some_and(ToldAbsence::is_late) {
            self.told.forget(rank);
        }
        let mut deliveries = self.tell_others(rank);
        deliveries.extend(self.for_others(rank, &Message::Left { rank }));
        for waiting in self.waiting.values_mut() {
            let missed = waiting.iter().filter(|waiter| waiter.of == Some(rank));
            deliveries.extend(missed.map(|waiter| (waiter.rank, Message::Gone { id: waiter.id })));
            waiting.retain(|waiter| waiter.of != Some(rank));
        }
        self.waiting.retain(|_, waiting| !waiting.is_empty());
        deliveries
    }

    fn get(&mut self, rank: u32, id: u64, key: String, of: Option<u32>) -> Vec<Delivery> {
        match self.values.get(&key) {
            Some(value) => vec![(rank, Message::Value { id, value: value.clone() })],
            None if of.is_some_and(|of| self.left.contains(&of)) => vec![(rank, Message::Gone { id })],
            None => {
                self.waiting.entry(key).or_default().push(Waiter { rank, id, of });
                Vec::new()
            }
        }
    }

    /// What ranks sent to each other and never received, once they have ended.
    pub(super) fn unreceived(&self) -> Vec<String> {
        let values = self.values.iter().map(|(key, value)| (key.as_str(), value.as_slice()));
        transfer::unreceived(values, |key| self.values.contains_key(key))
    }

    /// Whether a rank is lost.
    pub(super) fn has_lost(&self, rank: u32) -> bool {
        self.lost.contains_key(&rank)
    }

    /// What a rank asks for.
    pub(super) fn request(&mut self, rank: u32, message: Message) -> Vec<Delivery> {
        match message {
            Message::Put { id, key, value } => self.put(rank, id, key, value),
            Message::Get { id, key } => self.get(rank, id, key, None),
            Message::GetOf { id, rank: of, key } => self.get(rank, id, key, Some(of)),
            Message::Remove { id, key } => {
                self.remove(&key);
                vec![(rank, Message::Done { id })]
            }
            Message::Cancel { id, key } => {
                if let Some(waiting) = self.waiting.get_mut(&key) {
                    waiting.retain(|waiter| (waiter.rank, waiter.id) != (rank, id));
                }
                Vec::new()
            }
            Message::Forget { prefix } if transfer::is_exchange(&prefix) => {
                self.forget(&prefix);
                Vec::new()
            }
            Message::WhoIsMissing { id } => {
                let absent = || (0..self.size).filter(|rank| !self.present.contains(rank));
                // One that has joined and given up since is not missed, unless all the others are there.
                let mut ranks: Vec<u32> = absent().filter(|rank| !self.left.contains(rank)).collect();
                if ranks.is_empty() {
                    ranks = absent().collect();
                }
                vec![(rank, Message::Missing { id, ranks })]
            }
            Message::Told { absence, .. } => {
                // The store goes with rank 0, so it says at once what that was told.
                let is_told = self.told.note(rank, absence.clone()) && rank == 0;
                let told = Message::Told { rank, absence };
                if is_told { self.for_others(rank, &told) } else { Vec::new() }
            }
            Message::Here { host, thread } => {
                self.ring.enter(rank, Place { host, thread }).into_iter().map(told).collect()
            }
            _ => Vec::new(),
        }
    }

    fn put(&mut self, rank: u32, id: u64, key: String, value: Vec<u8>) -> Vec<Delivery> {
        // What a receiver says is not kept, and answered with the sends that wait for each other.
        if let Some((communicator, met)) = MetTransfer::parse(&key, &value) {
            self.groups.received(communicator, &met.transfer);
            let circle = self.order.received(communicator, met);
            let answer = |sends: Vec<String>| Message::Value { id, value: sends.join("\n").into_bytes() };
            return vec![(rank, circle.map_or(Message::Done { id }, answer))];
        }
        if let Some((communicator, wanted)) = WantedEnd::parse(&key, &value) {
            return self.give_up(rank, id, communicator, wanted);
        }
        if let Some(why) = self.misfit(&key, &value) {
            return vec![(rank, Message::Value { id, value: why })];
        }
        if compared_groups::group_of(&key).is_some() {
            return vec![(rank, Message::Done { id })];
        }
        let before = self.values.get(&key).map_or(0, |value| room(&key, value));
        let (used, limit) = match transfer::is_exchange(&key) {
            true => (&mut self.exchanged, self.exchange_limit),
            false => (&mut self.bytes, MAX_BYTES),
        };
        let bytes = *used - before + room(&key, &value);
        if bytes > limit {
            return vec![(rank, Message::Full { id, limit })];
        }
        *used = bytes;
        if let Some((communicator, transfer)) = Transfer::of_first_piece(&key) {
            self.order.sent(communicator, transfer);
        }
        let waiting = self.waiting.remove(&key).unwrap_or_default();
        let mut deliveries = vec![(rank, Message::Done { id })];
        deliveries.extend(
            waiting
                .into_iter()
                .map(|waiter| (waiter.rank, Message::Value { id: waiter.id, value: value.clone() })),
        );
        let ended = transfer::ended(&key, &value).map(|(name, size)| (name.to_owned(), size));
        self.values.insert(key, value);
        // All ranks have read what they brought to the collectives of a communicator that all of them have ended.
        if let Some((name, size)) = ended
            && (0..size).all(|rank| self.values.contains_key(&transfer::end_key(&name, rank)))
        {
            self.forget(&transfer::collective_keys(&name));
            self.groups.forget(&format!("{name}/"));
        }
        deliveries
    }

    /// Why a value is not taken that belongs to a call of a communicator.
    fn misfit(&mut self, key: &str, value: &[u8]) -> Option<Vec<u8>> {
        if let Some(group) = compared_groups::group_of(key) {
            let sent = |transfer: &Transfer| {
                let piece = self.values.get(&format!("{}/0", transfer.key(group.0)))?;
                let (called, said) = transfer::texts_of(piece)?;
                Some(ComparedCall { called: called.to_owned(), said: said.to_owned() })
            };
            return self.groups.call(group, value, sent).map(|misfit| misfit.packed());
        }
        if let Some(rank) = self.given_up.given_up_by(key) {
            return Some(rank.to_le_bytes().to_vec());
        }
        let (communicator, transfer) = Transfer::of_first_piece(key)?;
        // A send that was refused says nothing.
        let (called, _) = transfer::texts_of(value).filter(|(_, said)| !said.is_empty())?;
        self.groups.sent(communicator, &transfer, called).map(|other| other.packed())
    }

    /// A rank wants to give up collectives of a communicator.
    fn give_up(&mut self, rank: u32, id: u64, communicator: &str, wanted: WantedEnd) -> Vec<Delivery> {
        if !self.given_up.decide(communicator, &wanted, |key| self.values.contains_key(key)) {
            return vec![(rank, Message::Value { id, value: Vec::new() })];
        }
        // Said before it is withdrawn: a rank whose value is missing has given up, or has not come.
        let deliveries = self.put(rank, id, transfer::given_up_key(communicator, wanted.rank), wanted.said);
        for number in wanted.collectives {
            self.forget(&brought_keys(communicator, number, wanted.rank));
        }
        deliveries
    }

    fn remove(&mut self, key: &str) {
        if let Some(value) = self.values.remove(key) {
            let used = if transfer::is_exchange(key) { &mut self.exchanged } else { &mut self.bytes };
            *used -= room(key, &value);
        }
    }

    /// Removes all values whose keys begin so.
    fn forget(&mut self, prefix: &str) {
        let keys: Vec<String> = self.values.keys().filter(|key| key.starts_with(prefix)).cloned().collect();
        keys.iter().for_each(|key| self.remove(key));
        self.order.forget(prefix);
        self.groups.forget(prefix);
        self.given_up.forget(prefix);
    }
}

/// Bytes that a value takes with its key.
fn room(key: &str, value: &[u8]) -> u64 {
    (key.len() + value.len()) as u64
}

/// What a rank is told of the one that it looks after.
fn told((rank, duty): Duty) -> Delivery {
    let (other, thread) = duty.unwrap_or((rank, String::new()));
    (rank, Message::Watch { rank: other, thread })
}

/// How the keys of values begin that are removed when this rank is lost.
pub(super) fn own_keys(rank: u32) -> String {
    format!("kiln/of rank {rank}/")
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
