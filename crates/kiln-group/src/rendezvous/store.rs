//! What rank 0 keeps: which ranks are there, the values they put, and which ranks wait for which value.
//!
//! This part is pure: it says which messages go to which rank, and the server sends them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::host_ring::{Duty, HostRing, Place};
use super::message::{Message, Refusal};
use super::told_departures::ToldDepartures;
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
    told: ToldDepartures,
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
            told: ToldDepartures::default(),
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
        deliveries.extend(self.left.iter().map(|left| (rank, Message::Left { rank: *left })));
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
        Some(Message::Told { rank, departure: self.told.of(rank)?.clone() })
    }

    /// The same for all other ranks.
    fn tell_others(&self, rank: u32) -> Vec<Delivery> {
        let Some(told) = self.said_told(rank) else { return Vec::new() };
        self.present.iter().filter(|other| **other != rank).map(|other| (*other, told.clone())).collect()
    }

    /// A rank that has left puts nothing more: those that wait for it are told.
    fn leave_as_planned(&mut self, rank: u32) -> Vec<Delivery> {
        self.left.insert(rank);
        self.told.forget(rank);
        let mut deliveries: Vec<Delivery> =
            self.present.iter().map(|other| (*other, Message::Left { rank })).collect();
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
            Message::Told { departure, .. } => {
                // The store goes with rank 0, so it says at once what that was told.
                let is_told = self.told.note(rank, departure) && rank == 0;
                if is_told { self.tell_others(rank) } else { Vec::new() }
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
            let circle = self.order.received(communicator, met);
            let answer = |sends: Vec<String>| Message::Value { id, value: sends.join("\n").into_bytes() };
            return vec![(rank, circle.map_or(Message::Done { id }, answer))];
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
mod tests {
    use super::*;

    /// What the ranks of a job bring at most, in tests that do not say it.
    const LIMIT: u64 = 16 << 30;

    fn store(size: u32) -> Store {
        Store::new(size, LIMIT)
    }

    #[test]
    fn all_are_told_once_the_last_rank_is_there() {
        let mut store = store(2);
        assert_eq!(store.join(1), []);
        assert_eq!(
            store.request(1, Message::WhoIsMissing { id: 3 }),
            [(1, Message::Missing { id: 3, ranks: vec![0] })]
        );
        assert_eq!(store.join(0), [(0, Message::Complete), (1, Message::Complete)]);
    }

    #[test]
    fn wrong_ranks_are_refused() {
        let mut store = store(2);
        store.join(1);
        assert_eq!(store.admit(0, 3), Err(Refusal::Size { size: 2 }));
        assert_eq!(store.admit(2, 2), Err(Refusal::Range));
        assert_eq!(store.admit(1, 2), Err(Refusal::Taken));
        assert_eq!(store.admit(0, 2), Ok(()));
    }

    #[test]
    fn a_lost_rank_is_told_to_all_and_to_its_replacement_it_is_not() {
        let mut store = store(3);
        (0..3).for_each(|rank| drop(store.join(rank)));
        let lost = |rank| Message::Lost { rank, cause: "closed".into() };
        assert_eq!(store.leave(1, Some("closed".into())), [(0, lost(1)), (2, lost(1))]);
        assert_eq!(store.leave(1, Some("closed".into())), []);
        store.leave(2, Some("closed".into()));
        let back = store.join(1);
        let told = [Message::Back { rank: 1 }, lost(2), Message::Complete].map(|message| (1, message));
        assert_eq!(back[0], (0, Message::Back { rank: 1 }));
        assert_eq!(back[1..], told);
    }

    #[test]
    fn a_rank_that_comes_back_before_all_have_met_is_no_replacement() {
        let mut store = store(2);
        store.join(1);
        store.leave(1, Some("closed".into()));
        assert_eq!(store.join(1), []);
    }

    #[test]
    fn values_of_a_lost_rank_alone_go_away_with_it() {
        let mut store = store(12);
        [0, 1, 11].into_iter().for_each(|rank| drop(store.join(rank)));
        let put = |store: &mut Store, key: String| {
            store.request(1, Message::Put { id: 1, key, value: vec![5; 10] });
        };
        put(&mut store, own_keys(11) + "a");
        put(&mut store, "k".into());
        let kept = store.bytes;
        put(&mut store, own_keys(1) + "a");
        store.leave(1, Some("closed".into()));
        assert_eq!((store.bytes, store.values.len()), (kept, 2));
    }

    #[test]
    fn values_reach_those_that_wait_and_those_that_come_later() {
        let mut store = store(2);
        (0..2).for_each(|rank| drop(store.join(rank)));
        assert_eq!(store.request(0, Message::Get { id: 1, key: "k".into() }), []);
        let put = Message::Put { id: 2, key: "k".into(), value: vec![5] };
        let value = |id| Message::Value { id, value: vec![5] };
        assert_eq!(store.request(1, put), [(1, Message::Done { id: 2 }), (0, value(1))]);
        assert_eq!(store.request(0, Message::Get { id: 3, key: "k".into() }), [(0, value(3))]);
        store.request(0, Message::Remove { id: 4, key: "k".into() });
        assert_eq!(store.request(0, Message::Get { id: 5, key: "k".into() }), []);
        assert_eq!(store.bytes, 0);
    }

    #[test]
    fn a_rank_that_has_left_is_told_to_those_that_wait_for_its_value() {
        let mut store = store(3);
        (0..3).for_each(|rank| drop(store.join(rank)));
        let of = |id, key: &str| Message::GetOf { id, rank: 2, key: key.into() };
        store.request(2, Message::Put { id: 1, key: "there".into(), value: vec![7] });
        assert_eq!(store.request(0, of(2, "absent")), []);
        assert_eq!(store.request(1, Message::Get { id: 3, key: "absent".into() }), []);
        let told = store.leave(2, None);
        let left = Message::Left { rank: 2 };
        assert_eq!(told, [(0, left.clone()), (1, left.clone()), (0, Message::Gone { id: 2 })]);
        assert_eq!(store.request(1, of(4, "absent")), [(1, Message::Gone { id: 4 })]);
        assert_eq!(store.request(1, of(5, "there")), [(1, Message::Value { id: 5, value: vec![7] })]);
        store.leave(1, Some("closed".into()));
        assert!(store.join(1).contains(&(1, left)));
        assert!(store.join(2).contains(&(0, Message::Back { rank: 2 })));
        assert_eq!(store.request(0, of(6, "absent")), []);
    }

    #[test]
    fn what_collectives_bring_has_its_own_room_and_goes_when_all_ranks_have_ended() {
        let mut store = store(2);
        (0..2).for_each(|rank| drop(store.join(rank)));
        let name = transfer::communicator_name("ab");
        let keys = transfer::collective_keys(&name);
        let put = |store: &mut Store, key: String, value: Vec<u8>| {
            let answers = store.request(0, Message::Put { id: 1, key, value });
            assert_eq!(answers[0], (0, Message::Done { id: 1 }));
        };
        (0..65).for_each(|at| put(&mut store, format!("{keys}0/0/{at}"), vec![0; 1 << 20]));
        assert!(store.exchanged > MAX_BYTES && store.bytes == 0);
        put(&mut store, Transfer { from: 0, to: 1, number: 0 }.key(&name) + "/0", vec![1]);
        let end = transfer::end_value(2, &BTreeMap::new(), false);
        put(&mut store, transfer::end_key(&name, 1), end.clone());
        assert_eq!(store.values.len(), 67);
        put(&mut store, transfer::end_key(&name, 0), end);
        assert_eq!(store.values.len(), 3, "a send is there until it is received");
        store.request(0, Message::Forget { prefix: "k".into() });
        assert_eq!(store.values.len(), 3);
        store.request(0, Message::Forget { prefix: format!("{name}/") });
        assert_eq!((store.values.len(), store.exchanged), (0, 0));
    }

    #[test]
    fn a_receiver_is_told_of_sends_that_wait_for_each_other() {
        let mut store = store(2);
        (0..2).for_each(|rank| drop(store.join(rank)));
        let name = transfer::communicator_name("ab");
        let crossing = [(0, 1), (1, 0)].map(|(from, to)| Transfer { from, to, number: 0 });
        for sent in crossing {
            let key = format!("{}/0", sent.key(&name));
            store.request(sent.from, Message::Put { id: 1, key, value: vec![1] });
        }
        let mut receive = |transfer: Transfer| {
            let met =
                MetTransfer { transfer, sent_in: 0, received_in: 1, said: format!("of {}", transfer.from) };
            let put = Message::Put { id: 2, key: met.key(&name), value: met.value() };
            store.request(transfer.to, put)
        };
        assert_eq!(receive(crossing[0]), [(1, Message::Done { id: 2 })]);
        assert_eq!(receive(crossing[1]), [(0, Message::Value { id: 2, value: b"of 1\nof 0".to_vec() })]);
        assert_eq!(store.values.len(), 2, "what receivers say is not kept");
    }

    #[test]
    fn what_collectives_bring_beyond_the_limit_is_refused_to_the_byte() {
        let mut store = store(2);
        (0..2).for_each(|rank| drop(store.join(rank)));
        let key = transfer::collective_keys(&transfer::communicator_name("ab")) + "0/0/0";
        // So much was brought before, in values that need not be there.
        store.exchanged = LIMIT - room(&key, &[0; 1000]);
        let mut put =
            |bytes: usize| store.request(1, Message::Put { id: 1, key: key.clone(), value: vec![0; bytes] });
        assert_eq!(put(1001), [(1, Message::Full { id: 1, limit: LIMIT })]);
        assert_eq!(put(1000), [(1, Message::Done { id: 1 })]);
        assert_eq!(store.exchanged, LIMIT);
        assert_eq!(store.bytes, 0, "what programs put has its own room");
    }

    #[test]
    fn a_value_that_is_not_waited_for_any_more_is_not_sent() {
        let mut store = store(2);
        (0..2).for_each(|rank| drop(store.join(rank)));
        for id in [1, 2] {
            assert_eq!(store.request(0, Message::Get { id, key: "k".into() }), []);
        }
        store.request(0, Message::Cancel { id: 1, key: "k".into() });
        let put = Message::Put { id: 3, key: "k".into(), value: vec![5] };
        let told = [(1, Message::Done { id: 3 }), (0, Message::Value { id: 2, value: vec![5] })];
        assert_eq!(store.request(1, put), told);
    }

    #[test]
    fn a_full_store_refuses_and_keeps_what_it_has() {
        let mut store = store(1);
        store.join(0);
        let mut refused = 0;
        for n in 0..100 {
            let put = Message::Put { id: n, key: format!("k{n}"), value: vec![0; 1 << 20] };
            refused += u32::from(store.request(0, put) == [(0, Message::Full { id: n, limit: MAX_BYTES })]);
        }
        assert!((36..40).contains(&refused), "{refused}");
        assert!(matches!(
            store.request(0, Message::Get { id: 1, key: "k0".into() })[..],
            [(0, Message::Value { .. })]
        ));
    }
}
