//! What rank 0 keeps: which ranks are there, the values they put, and which ranks wait for which value.
//!
//! This part is pure: it says which messages go to which rank, and the server sends them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::host_ring::{Duty, HostRing, Place};
use super::message::{Message, Refusal};
use crate::transfer;

/// The most bytes of all keys and values of a program.
const MAX_BYTES: usize = 64 << 20;
/// The most bytes of what ranks bring to collectives, which their devices hold as well.
pub(super) const MAX_EXCHANGED: usize = 16 << 30;

/// A message and the rank that gets it.
pub(super) type Delivery = (u32, Message);

#[derive(Debug)]
pub(super) struct Store {
    size: u32,
    present: BTreeSet<u32>,
    lost: BTreeMap<u32, String>,
    complete: bool,
    values: HashMap<String, Vec<u8>>,
    bytes: usize,
    /// Bytes of what ranks bring to collectives.
    exchanged: usize,
    waiting: HashMap<String, Vec<Waiter>>,
    /// Ranks that have left as planned.
    left: BTreeSet<u32>,
    ring: HostRing,
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
    pub(super) fn new(size: u32) -> Self {
        let (values, waiting) = (HashMap::new(), HashMap::new());
        Self {
            size,
            present: BTreeSet::new(),
            lost: BTreeMap::new(),
            complete: false,
            values,
            bytes: 0,
            exchanged: 0,
            waiting,
            left: BTreeSet::new(),
            ring: HostRing::default(),
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
        if had_left || was_lost {
            deliveries.extend(self.present.iter().map(|other| (*other, Message::Back { rank })));
        }
        // It is told that it is a replacement, unless the ranks have not met yet.
        if (had_left || was_lost) && self.complete {
            deliveries.push((rank, Message::Back { rank }));
        }
        deliveries.extend(
            self.lost.iter().map(|(lost, cause)| (rank, Message::Lost { rank: *lost, cause: cause.clone() })),
        );
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
            self.bytes -= if is_kept { 0 } else { key.len() + value.len() };
            is_kept
        });
        self.lost.insert(rank, cause.clone());
        duties
            .extend(self.present.iter().map(|other| (*other, Message::Lost { rank, cause: cause.clone() })));
        duties
    }

    /// A rank that has left puts nothing more: those that wait for it are told.
    fn leave_as_planned(&mut self, rank: u32) -> Vec<Delivery> {
        self.left.insert(rank);
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
            Message::Here { host, thread } => {
                self.ring.enter(rank, Place { host, thread }).into_iter().map(told).collect()
            }
            _ => Vec::new(),
        }
    }

    fn put(&mut self, rank: u32, id: u64, key: String, value: Vec<u8>) -> Vec<Delivery> {
        let before = self.values.get(&key).map_or(0, |value| key.len() + value.len());
        let (used, most) = match transfer::is_exchange(&key) {
            true => (&mut self.exchanged, MAX_EXCHANGED),
            false => (&mut self.bytes, MAX_BYTES),
        };
        let bytes = *used - before + key.len() + value.len();
        if bytes > most {
            return vec![(rank, Message::Full { id })];
        }
        *used = bytes;
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
            *used -= key.len() + value.len();
        }
    }

    /// Removes all values whose keys begin so.
    fn forget(&mut self, prefix: &str) {
        let keys: Vec<String> = self.values.keys().filter(|key| key.starts_with(prefix)).cloned().collect();
        keys.iter().for_each(|key| self.remove(key));
    }
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

    #[test]
    fn all_are_told_once_the_last_rank_is_there() {
        let mut store = Store::new(2);
        assert_eq!(store.join(1), []);
        assert_eq!(
            store.request(1, Message::WhoIsMissing { id: 3 }),
            [(1, Message::Missing { id: 3, ranks: vec![0] })]
        );
        assert_eq!(store.join(0), [(0, Message::Complete), (1, Message::Complete)]);
    }

    #[test]
    fn wrong_ranks_are_refused() {
        let mut store = Store::new(2);
        store.join(1);
        assert_eq!(store.admit(0, 3), Err(Refusal::Size { size: 2 }));
        assert_eq!(store.admit(2, 2), Err(Refusal::Range));
        assert_eq!(store.admit(1, 2), Err(Refusal::Taken));
        assert_eq!(store.admit(0, 2), Ok(()));
    }

    #[test]
    fn a_lost_rank_is_told_to_all_and_to_its_replacement_it_is_not() {
        let mut store = Store::new(3);
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
        let mut store = Store::new(2);
        store.join(1);
        store.leave(1, Some("closed".into()));
        assert_eq!(store.join(1), []);
    }

    #[test]
    fn values_of_a_lost_rank_alone_go_away_with_it() {
        let mut store = Store::new(12);
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
        let mut store = Store::new(2);
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
        let mut store = Store::new(3);
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
        let mut store = Store::new(2);
        (0..2).for_each(|rank| drop(store.join(rank)));
        let name = transfer::communicator_name("ab");
        let keys = transfer::collective_keys(&name);
        let put = |store: &mut Store, key: String, value: Vec<u8>| {
            let answers = store.request(0, Message::Put { id: 1, key, value });
            assert_eq!(answers[0], (0, Message::Done { id: 1 }));
        };
        (0..65).for_each(|at| put(&mut store, format!("{keys}0/0/{at}"), vec![0; 1 << 20]));
        assert!(store.exchanged > MAX_BYTES && store.bytes == 0);
        put(&mut store, transfer::Transfer { from: 0, to: 1, number: 0 }.key(&name) + "/0", vec![1]);
        let end = transfer::end_value(2, &BTreeMap::new());
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
    fn a_value_that_is_not_waited_for_any_more_is_not_sent() {
        let mut store = Store::new(2);
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
        let mut store = Store::new(1);
        store.join(0);
        let mut refused = 0;
        for n in 0..100 {
            let put = Message::Put { id: n, key: format!("k{n}"), value: vec![0; 1 << 20] };
            refused += u32::from(store.request(0, put) == [(0, Message::Full { id: n })]);
        }
        assert!((36..40).contains(&refused), "{refused}");
        assert!(matches!(
            store.request(0, Message::Get { id: 1, key: "k0".into() })[..],
            [(0, Message::Value { .. })]
        ));
    }
}
